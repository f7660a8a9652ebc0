# Completion of divvy for fish. SPDX-License-Identifier: Apache-2.0
#
# Found by fish where it is installed as share/fish/vendor_completions.d/divvy.fish; to be sourced otherwise. It asks
# "divvy help" what there is.

# NAME<tab>WHAT IT DOES, a line for each subcommand.
function __divvy_subcommands
    divvy help 2>/dev/null | string replace -rf '^  ([a-z]+) (?:\[[A-Z]+\])? +(.*)$' '$1\t$2'
    printf '%s\t%s\n' --version 'print the version' --help 'print an overview'
end

# The same for each option of a subcommand; --name ARGUMENT<tab>... where it takes one.
function __divvy_help -a subcommand
    divvy help $subcommand 2>/dev/null | string replace -rf \
        '^  (?:(-[A-Za-z]), )?(--[a-z-]+(?: [A-Z/]+)?)(?:  +(.*))?$' '$1\t$2\t$3'
end

function __divvy_options
    for line in (__divvy_help (commandline -opc)[2])
        set -l parts (string split \t -- $line)
        set -l name (string split ' ' -- $parts[2])[1]
        printf '%s\t%s\n' $name $parts[3]
        test -n "$parts[1]"; and printf '%s\t%s\n' $parts[1] $parts[3]
    end
end

# What the option is followed by, as FILE; nothing behind a flag.
function __divvy_argument -a subcommand option
    for line in (__divvy_help $subcommand)
        set -l parts (string split \t -- $line)
        set -l name (string split ' ' -- $parts[2])
        if contains -- $option $name[1] $parts[1]
            echo $name[2]
            return
        end
    end
end

# How many words stand before the command that a subcommand runs; nothing while there is none.
function __divvy_command_at
    set -l words (commandline -opc)
    set -l i 3
    while test $i -le (count $words)
        if test "$words[$i]" = --
            echo $i
            return
        else if string match -q -- '-*' $words[$i]
            test -n "$(__divvy_argument $words[2] $words[$i])"; and set i (math $i + 1)
        else if contains $words[2] lock elect
            echo $i
            return
        end
        set i (math $i + 1)
    end
end

function __divvy_complete
    set -l words (commandline -opc)
    set -l at (__divvy_command_at)
    if test (count $words) -eq 1
        __divvy_subcommands
    else if test -n "$at"
        __fish_complete_subcommand --fcs-skip=$at
    else if test $words[2] = help
        __divvy_subcommands | string match -v -- '-*'
    else
        switch (__divvy_argument $words[2] $words[-1])
            case FILE
                __fish_complete_path (commandline -ct)
            case ''
                __divvy_options
        end
    end
end

complete -c divvy -f -a '(__divvy_complete)'
