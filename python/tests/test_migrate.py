"""The programs and names of docs/migrate.md are right. SPDX-License-Identifier: Apache-2.0"""
import datetime
import importlib
import inspect
import pkgutil
import re

import kazoo.exceptions
import kazoo.recipe

import divvy
import divvy.kazoo
from conftest import ROOT

PAGE = (ROOT / "docs" / "migrate.md").read_text()
TABLE = re.search(r"^## From kazoo$(.*?)^## ", PAGE, re.M | re.S)[1]


# The page's one program runs as it stands, and a transaction that checks a lock's node fails once the node is gone.
def test_program(server):
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    done = []
    names = {"datetime": datetime, "lead": lambda: done.append("led"), "clean_up": lambda: done.append("cleaned")}
    exec(text.replace("zk1:2181,zk2:2181,zk3:2181", server.connect), names)
    client, lock = names["client"], names["lock"]
    try:
        assert done == ["led", "cleaned"] and names["seen"].value == 1
        assert isinstance(lock, divvy.kazoo.Lock) and isinstance(client.Election("/leader").lock, divvy.kazoo.Lock)
        assert not [result for result in names["results"] if isinstance(result, Exception)]
        assert client.get("/report")[0] == b"done"
        assert not client.NonBlockingLease("/hourly", datetime.timedelta(1), "bert")
        with lock:
            client.delete(f"/locks/report/{lock.node}")
            write = re.search(r"^with lock:\n(.*)", text, re.M | re.S)[1]
            exec(write.replace("    ", "").replace("done", "late"), names)
        assert isinstance(names["results"][0], kazoo.exceptions.NoNodeError)
        assert client.get("/report")[0] == b"done"
    finally:
        client.stop()
        client.close()


# The table has each recipe of kazoo, and `KazooClient` has divvy's where the table says so.
def test_recipes():
    cells = [line.split(" | ") for line in TABLE.splitlines() if line.startswith("| `")]
    named = {name: row for row in cells for name in re.findall(r"`(\w+)`", row[0])}
    internal = {"BaseParty", "BaseQueue", "PartitionState", "TreeEvent", "TreeNode", "NodeData"}
    recipes = set()
    for module in pkgutil.iter_modules(kazoo.recipe.__path__):
        found = importlib.import_module("kazoo.recipe." + module.name)
        recipes |= {name for name, thing in vars(found).items()
                    if inspect.isclass(thing) and thing.__module__ == found.__name__ and not name.startswith("_")}
    assert recipes - internal - {"KazooException"} == set(named) - {"TransactionRequest"}
    client = divvy.kazoo.KazooClient()
    for name in recipes - internal:
        made = getattr(client, name, None)
        ours = made is not None and made.func.__module__.startswith("divvy.")
        assert ours == ("divvy.kazoo" in named[name][1]), name


# Each name of the package that the page has is there.
def test_names():
    classes = [thing for thing in vars(divvy).values() if inspect.isclass(thing) and not issubclass(thing, Exception)]
    known = {name for thing in classes for name in [*dir(thing), *inspect.signature(thing).parameters]
             if "__" not in name} | {"run"}
    for name in re.findall(r"`(divvy\.[\w.]+)`", PAGE):
        found = divvy
        for part in name.split(".")[1:]:
            found = getattr(found, part)
    for cell in [cell for line in TABLE.splitlines() if line.startswith("| `") for cell in line.split(" | ")[2:]]:
        assert not set(re.findall(r"`([a-z_]+)`", cell)) - known
