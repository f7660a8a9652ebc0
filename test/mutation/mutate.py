"""Mutants of C files, from clang's syntax tree, one a line, all in one build. SPDX-License-Identifier: Apache-2.0

A mutant is one small change of one expression or statement. Each stands beside what it changes, and a number that is
read as the program starts chooses between the two:

    if (dv_mutant_at(17) ? (a <= b) : (a < b))

What comes out of a macro with arguments is left alone, assertions among it. So is what has to be constant: labels of
cases, sizes of arrays, initialisers of static data.
"""
import bisect
import collections
import random
import re
import subprocess

try:
    from clang.cindex import CursorKind, Index, StorageClass, TranslationUnit, TypeKind
except ImportError:  # the arithmetic of judge.py needs no clang
    CursorKind = None

# `start` and `end` are offsets of the bytes that `new` replaces. A statement has no value: `new` is then what is left.
Mutant = collections.namedtuple("Mutant", "file line function start end old new is_statement")

SWAPS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "+": ["-"], "-": ["+"],
         "*": ["+"], "/": ["*"], "%": ["*"], "&": ["|"], "|": ["&"], "^": ["&"], "<<": [">>"], ">>": ["<<"]}
COMPOUND = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "*=": "+=", "<<=": ">>=", ">>=": "<<="}
ORDERED = {"<", "<=", ">", ">=", "+", "-"}


def arguments(*more):
    """Returns clang's arguments for a file."""
    folder = subprocess.run(["clang", "-print-resource-dir"], check=True, capture_output=True, text=True).stdout
    return ["-std=c11", "-D_GNU_SOURCE", "-I%s/include" % folder.strip(), *more]


class Source:
    """One file, as clang has read it."""

    def __init__(self, path, name, arguments):
        self.name = name
        self.text = path.read_bytes()
        unit = Index.create().parse(str(path), args=arguments,
                                    options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [d for d in unit.diagnostics if d.severity >= 3]
        if errors:
            raise SystemExit("%s: clang: %s" % (path, errors[0]))
        self.lines = [0] + [m.end() for m in re.finditer(rb"\n", self.text)]
        self.macros = []
        self.functions = []
        for cursor in unit.cursor.get_children():
            if not cursor.location.file or cursor.location.file.name != str(path):
                continue
            if cursor.kind == CursorKind.MACRO_INSTANTIATION:
                self.macros.append((cursor.extent.start.offset, cursor.extent.end.offset))
            elif cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition():
                self.functions.append(cursor)
        self.macros.sort()
        self.found = []

    def of(self, cursor):
        return self.between(cursor.extent.start.offset, cursor.extent.end.offset)

    def between(self, start, end):
        return self.text[start:end].decode()

    def line(self, offset):
        return bisect.bisect_right(self.lines, offset)

    def is_macro_inside(self, start, end):
        """Returns whether the bytes lie in a macro that is called with arguments, or cut one into pieces."""
        for macro_start, macro_end in self.macros:
            if macro_start >= end:
                break
            if macro_end <= start:
                continue
            has_arguments = self.text[macro_end - 1:macro_end] == b")"
            if macro_start <= start and end <= macro_end and has_arguments:
                return True
            if not (start <= macro_start and macro_end <= end) and not (macro_start <= start and end <= macro_end):
                return True
        return False

    def add(self, function, start, end, new, is_statement=False):
        if start >= end or self.is_macro_inside(start, end):
            return
        old = self.between(start, end)
        self.found.append(Mutant(self.name, self.line(start), function, start, end, old, new, is_statement))


def compact(text):
    return re.sub(r"\s+", " ", text).strip()


def plain(cursor):
    """Returns the expression below conversions that are not written."""
    while cursor.kind == CursorKind.UNEXPOSED_EXPR:
        children = list(cursor.get_children())
        if len(children) != 1 or children[0].extent != cursor.extent:
            break
        cursor = children[0]
    return cursor


class Walk:
    """Finds the mutants of a function."""

    def __init__(self, source, function):
        self.source = source
        self.function = function.spelling
        self.returns = function.result_type.get_canonical().kind
        for child in function.get_children():
            if child.kind == CursorKind.COMPOUND_STMT:
                self.statements(child)

    def add(self, cursor, new, is_statement=False):
        self.source.add(self.function, cursor.extent.start.offset, cursor.extent.end.offset, new, is_statement)

    # ---- statements ----

    def statements(self, cursor):
        for child in cursor.get_children():
            self.statement(child)

    def statement(self, cursor):
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind == CursorKind.IF_STMT:
            self.condition(children[0])
            for child in children[1:]:
                self.statement(child)
        elif kind == CursorKind.WHILE_STMT:
            self.condition(children[0])
            self.statement(children[1])
        elif kind == CursorKind.DO_STMT:
            self.statement(children[0])
            self.condition(children[1])
        elif kind == CursorKind.FOR_STMT:
            self.loop(cursor, children)
        elif kind in (CursorKind.CASE_STMT, CursorKind.SWITCH_STMT):
            if kind == CursorKind.SWITCH_STMT:
                self.expression(children[0], cursor)
            for child in children[1:]:
                self.statement(child)
        elif kind in (CursorKind.COMPOUND_STMT, CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT):
            self.statements(cursor)
        elif kind == CursorKind.DECL_STMT:
            for child in children:
                self.declaration(child)
        elif kind == CursorKind.RETURN_STMT:
            self.result(cursor, children)
        elif kind in (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT):
            self.jump(cursor)
        elif kind.is_expression():
            self.step(cursor, children)

    def jump(self, cursor):
        end = self.source.text.index(b";", cursor.extent.start.offset) + 1
        self.source.add(self.function, cursor.extent.start.offset, end, "{}", True)

    def loop(self, cursor, children):
        """Takes the condition; a changed step would only make loops without an end."""
        text, depth, ends = self.source.text, 0, []
        at = text.index(b"(", cursor.extent.start.offset)
        for offset in range(at, cursor.extent.end.offset):
            byte = text[offset:offset + 1]
            depth += (byte == b"(") - (byte == b")")
            if byte == b";" and depth == 1:
                ends.append(offset)
            if depth == 0:
                break
        for child in children[:-1] if len(ends) == 2 else []:  # else the head is a macro
            start = child.extent.start.offset
            if start < ends[0] and child.kind == CursorKind.DECL_STMT:
                self.statement(child)
            elif ends[0] < start < ends[1]:
                self.condition(child)
        self.statement(children[-1])

    def declaration(self, cursor):
        if cursor.kind != CursorKind.VAR_DECL or cursor.storage_class == StorageClass.STATIC:
            return
        for child in cursor.get_children():
            before = self.source.between(cursor.location.offset, child.extent.start.offset)
            if child.kind.is_expression() and "=" in before:
                self.expression(child, cursor)

    def result(self, cursor, children):
        if not children:
            self.jump(cursor)
            return
        value = children[0]
        text = self.source.of(value)
        if self.returns == TypeKind.BOOL and text in ("true", "false"):
            self.add(value, "false" if text == "true" else "true")
        elif self.returns == TypeKind.BOOL:
            self.add(value, "!(%s)" % text)
        elif self.returns == TypeKind.POINTER and text != "NULL":
            self.add(value, "NULL")
        elif self.returns in (TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.ENUM):
            self.add(value, "1" if text == "0" else "0")
        self.expression(value, cursor)

    def step(self, cursor, children):
        """Takes away a call or an assignment that stands as a statement, or changes how it assigns."""
        kind = cursor.kind
        text = self.source.of(cursor)
        if kind == CursorKind.CALL_EXPR:
            self.add(cursor, "", True)
        elif kind == CursorKind.BINARY_OPERATOR and self.operator(cursor, children) == "=":
            self.add(cursor, "", True)
        elif kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.add(cursor, "", True)
            operator = self.operator(cursor, children)
            if operator in COMPOUND:
                self.add(cursor, "%s %s %s" % (self.source.of(children[0]), COMPOUND[operator],
                                               self.source.of(children[1])), True)
        elif kind == CursorKind.UNARY_OPERATOR and ("++" in text or "--" in text):
            self.add(cursor, "", True)
        self.parts(cursor, children)

    # ---- expressions ----

    def condition(self, cursor):
        text = self.source.of(cursor)
        if text not in ("true", "1"):
            self.add(cursor, "!(%s)" % text)
        self.expression(cursor, None)

    def operator(self, cursor, children):
        if len(children) != 2:
            return ""
        return self.source.between(children[0].extent.end.offset, children[1].extent.start.offset).strip()

    def parts(self, cursor, children):
        for child in children:
            if child.kind.is_expression():
                self.expression(child, cursor)

    def expression(self, cursor, parent):
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind in (CursorKind.CXX_UNARY_EXPR, CursorKind.StmtExpr):  # sizeof
            return
        if kind == CursorKind.BINARY_OPERATOR:
            self.binary(cursor, children)
        elif kind == CursorKind.CONDITIONAL_OPERATOR:
            self.condition(children[0])
            children = children[1:]
        elif kind == CursorKind.INTEGER_LITERAL:
            self.literal(cursor, parent)
        if kind == CursorKind.INIT_LIST_EXPR:  # a literal there may be the name of a place
            children = [child for child in children if plain(child).kind != CursorKind.INTEGER_LITERAL
                        and not self.is_constant(plain(child))]
        self.parts(cursor, children)

    def is_constant(self, cursor):
        return (cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced is not None
                and cursor.referenced.kind == CursorKind.ENUM_CONSTANT_DECL)

    def binary(self, cursor, children):
        operator = self.operator(cursor, children)
        if len(children) != 2:
            return
        left, right = (self.source.of(child) for child in children)
        if operator in ("&&", "||"):
            other = "||" if operator == "&&" else "&&"
            self.add(cursor, "(%s) %s (%s)" % (left, other, right))
            self.add(cursor, "!!(%s)" % left)
            self.add(cursor, "!!(%s)" % right)
        pointers = [child.type.get_canonical().kind in (TypeKind.POINTER, TypeKind.CONSTANTARRAY)
                    for child in children]
        if operator in "+-" and (all(pointers) or (pointers[1] and operator == "+")):
            return
        for other in SWAPS.get(operator, []):
            self.add(cursor, "%s %s %s" % (left, other, right))
        if operator in ORDERED:
            for child in children:
                if self.is_constant(plain(child)):
                    text = self.source.of(child)
                    self.add(child, "%s + 1" % text)
                    self.add(child, "%s - 1" % text)

    def literal(self, cursor, parent):
        text = self.source.of(cursor)
        if parent is not None and parent.type.get_canonical().kind == TypeKind.POINTER:
            return
        if text in ("true", "false"):
            self.add(cursor, "false" if text == "true" else "true")
        elif re.fullmatch(r"\d+[uUlL]*", text):
            self.add(cursor, "1" if text == "0" else "%s + 1" % text)
            if text != "0":
                self.add(cursor, "%s - 1" % text)


def mutants(source):
    """Returns all mutants of the file, in order, each change once."""
    for function in source.functions:
        Walk(source, function)
    once = {(m.start, m.end, compact(m.new), m.is_statement): m for m in source.found}
    return sorted(once.values(), key=lambda m: (m.start, -m.end, m.new))


def one_a_line(source, seed):
    """Returns one mutant of each line that has any. Which one does not depend on the other lines of the file."""
    lines = collections.defaultdict(list)
    for mutant in mutants(source):
        lines[mutant.line].append(mutant)
    texts, chosen = collections.Counter(), []
    for line, of_line in sorted(lines.items()):
        end = source.lines[line] if line < len(source.lines) else len(source.text)
        text = source.between(source.lines[line - 1], end).strip()
        texts[text] += 1
        dice = random.Random("%d %s %s %d" % (seed, source.name, text, texts[text]))
        chosen.append(dice.choice(of_line))
    return chosen


def render(text, start, end, numbered):
    """Returns the bytes from start to end with the mutants that stand in them; outer ones come before inner ones."""
    out, at = "", start
    while numbered:
        number, mutant = numbered.pop(0)
        inner = []
        while numbered and numbered[0][1].start < mutant.end:
            if numbered[0][1].end <= mutant.end:
                inner.append(numbered[0])
            numbered.pop(0)
        old = render(text, mutant.start, mutant.end, inner)
        out += text[at:mutant.start].decode() + both(number, mutant, old)
        at = mutant.end
    return out + text[at:end].decode()


def both(number, mutant, old):
    new = compact(mutant.new)
    if mutant.is_statement and new == "{}":
        return "{ if (!dv_mutant_at(%d)) %s }" % (number, old)
    if mutant.is_statement:
        return "(dv_mutant_at(%d) ? (void)(%s) : (void)(%s))" % (number, new or "0", old)
    if new.startswith("!("):  # of a condition, which may be a pointer
        return "(dv_mutant_at(%d) ? %s : !!(%s))" % (number, new, old)
    return "(dv_mutant_at(%d) ? (%s) : (%s))" % (number, new, old)


def rewrite(source, numbered):
    """Returns the file with the mutants, which are pairs of a number and a mutant. Its lines keep their numbers."""
    ordered = sorted(numbered, key=lambda pair: (pair[1].start, -pair[1].end))
    return '#include "mutation/mutant.h"\n#line 1\n' + render(source.text, 0, len(source.text), ordered)
