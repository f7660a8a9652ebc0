# divvyLock: runs a shell function while a lock is held. SPDX-License-Identifier: Apache-2.0
#
#     . /usr/share/divvy/divvy-lock.bash
#     divvyLock [OPTION ...] NAME FUNCTION [ARGUMENT ...]
#
# The options are those of `divvy lock`, which is to be in the PATH. FUNCTION may be a function, a builtin or a
# program; divvyLock returns its exit status, or, where it was not run or not to its end, the exit code of `divvy lock`:
# 4 where somebody else has the lock, unless -E says another.
# It finds DIVVY_LOCK_NAME, DIVVY_LOCK_TOKEN and DIVVY_LOCK_SLOT in its environment.
#
# FUNCTION is run in a subshell: what it assigns is gone afterwards. For when the lock is lost, or cannot be kept, the
# subshell and all processes that come from it can be ended: by SIGTERM, and by SIGKILL before the lock can be somebody
# else's. A process that left its parents behind (a daemon) is not found: for such, let `divvy lock` run a program.
#
# For Bash 3 and later. Nothing but the functions whose names begin with divvyLock is defined.

divvyLock() {
    local divvyLockOptions
    divvyLockOptions=()
    while [ $# -gt 0 ]; do
        case $1 in
        --)
            shift
            break
            ;;
        --help | -h)
            divvy lock --help
            return
            ;;
        --no-* | --shared | --verbose | --*=* | -[nE]?*)
            divvyLockOptions[${#divvyLockOptions[@]}]=$1
            shift
            ;;
        -*)
            if [ $# -lt 2 ]; then break; fi
            divvyLockOptions[${#divvyLockOptions[@]}]=$1
            divvyLockOptions[${#divvyLockOptions[@]}]=$2
            shift 2
            ;;
        *) break ;;
        esac
    done
    if [ $# -lt 2 ]; then
        printf 'usage: divvyLock [OPTION ...] NAME FUNCTION [ARGUMENT ...]\n' >&2
        return 2
    fi
    (divvyLockRun "$@")
}

# divvyLockRun NAME FUNCTION [ARGUMENT ...]: in a subshell, which it ends.
#
# `divvy lock --hold` says "held", later perhaps "lost", on descriptor 42, which ends with the lock; and it holds the
# lock until descriptor 41 is closed, if only by our end. FUNCTION sees the variables here: hence their names.
divvyLockRun() {
    local divvyLockName=$1 divvyLockFolder divvyLockHolder divvyLockWatcher divvyLockSelf divvyLockStatus
    local divvyLockWord divvyLockToken divvyLockSlot divvyLockTree divvyLockErrexit
    shift
    # Of the shell's options only that one would be in our way here; FUNCTION gets it back.
    case $- in
    *e*) divvyLockErrexit=-e ;;
    *) divvyLockErrexit=+e ;;
    esac
    set +e
    divvyLockFolder=$(mktemp -d "${TMPDIR:-/tmp}/divvy-lock.XXXXXX") || exit 125
    trap 'rm -rf "$divvyLockFolder"' EXIT
    mkfifo "$divvyLockFolder/in" "$divvyLockFolder/out" || exit 125
    divvy lock --hold ${divvyLockOptions[@]+"${divvyLockOptions[@]}"} -- "$divvyLockName" \
        <"$divvyLockFolder/in" >"$divvyLockFolder/out" &
    divvyLockHolder=$!
    exec 41>"$divvyLockFolder/in" 42<"$divvyLockFolder/out"
    IFS=' ' read -r divvyLockWord divvyLockToken divvyLockSlot <&42
    if [ "$divvyLockWord" != held ]; then
        exec 41>&-
        wait "$divvyLockHolder"
        exit
    fi
    (
        exec 41>&-
        divvyLockWatch "$divvyLockFolder"
    ) &
    divvyLockWatcher=$!
    (
        exec 41>&- 42<&-
        # The number of this subshell: the parent of a program that is executed in it.
        divvyLockSelf=$(exec sh -c 'echo "$PPID"')
        printf '%s\n' "$divvyLockSelf" >"$divvyLockFolder/pid"
        unset DIVVY_LOCK_SLOT
        export DIVVY_LOCK_NAME="$divvyLockName" DIVVY_LOCK_TOKEN="$divvyLockToken"
        if [ -n "$divvyLockSlot" ]; then export DIVVY_LOCK_SLOT="$divvyLockSlot"; fi
        set "$divvyLockErrexit"
        "$@"
    )
    divvyLockStatus=$?
    { kill "$divvyLockWatcher" && wait "$divvyLockWatcher"; } 2>/dev/null
    # Where FUNCTION was to end, what has outlived it ends now: the lock goes next.
    if IFS= read -r divvyLockTree <"$divvyLockFolder/tree"; then divvyLockSignal KILL "$divvyLockTree"; fi 2>/dev/null
    exec 41>&-
    wait "$divvyLockHolder"
    divvyLockWord=$?
    if [ "$divvyLockWord" -gt 128 ]; then
        printf 'divvyLock: the process that held the lock "%s" was ended\n' "$divvyLockName" >&2
        exit 5
    fi
    if [ "$divvyLockWord" -ne 0 ]; then exit "$divvyLockWord"; fi
    exit "$divvyLockStatus"
}

# divvyLockWatch FOLDER: when the lock is lost, ends the process whose number is in FOLDER/pid, with all that come from
# it; who they are is then in FOLDER/tree. When that was told in time there is a grace, until `divvy lock` ends.
divvyLockWatch() {
    local word pid tree parent started begun
    # Learned now: the folder goes with the shell that we watch for, which may be ended before us, by ^C for one.
    while ! read -r pid <"$1/pid"; do
        if [ ! -d "$1" ]; then return; fi
        sleep 0.02
    done 2>/dev/null
    divvyLockStat "$pid" || return
    begun=$started
    read -r word <&42
    if ! divvyLockStat "$pid" || [ "$started" != "$begun" ]; then return; fi
    tree=$(divvyLockFind "$pid")
    { printf '%s\n' "$tree" >"$1/new" && mv "$1/new" "$1/tree"; } 2>/dev/null
    divvyLockSignal TERM "$tree"
    if [ "$word" = lost ]; then read -r word <&42; fi
    divvyLockSignal KILL "$tree $(divvyLockFind "$pid")"
}

# divvyLockStat PID: sets the variables parent and started; fails if there is no such process.
divvyLockStat() {
    local line IFS=$' \t\n'
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
    # Behind the name, which is in parentheses: the state, the parent, and so on; to be split into words.
    # shellcheck disable=SC2086
    set -- ${line##*) }
    parent=$2
    started=${20}
}

# divvyLockFind PID: prints the process and all that come from it, children first, each as NUMBER:START. In a subshell.
divvyLockFind() {
    local all parents=" $1 " file pid parent started found=yes
    set +f
    divvyLockStat "$1" || return
    all="$1:$started"
    while [ -n "$found" ]; do
        found=
        for file in /proc/[0-9]*; do
            pid=${file#/proc/}
            divvyLockStat "$pid" || continue
            case $parents in
            *" $pid "*) ;;
            *" $parent "*)
                parents="$parents$pid "
                all="$pid:$started $all"
                found=yes
                ;;
            esac
        done
    done
    printf '%s\n' "$all"
}

# divvyLockSignal SIGNAL LIST: sends it to those of the list that are there still; their numbers may be others' by now.
divvyLockSignal() {
    local number=$1 process parent started IFS=$' \t\n'
    for process in $2; do
        if divvyLockStat "${process%:*}" && [ "$started" = "${process#*:}" ]; then
            kill -s "$number" "${process%:*}" 2>/dev/null
        fi
    done
}
