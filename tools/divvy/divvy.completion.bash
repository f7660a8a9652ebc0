# Completion of divvy for Bash. SPDX-License-Identifier: Apache-2.0
#
# Found by the package bash-completion where it is installed as share/bash-completion/completions/divvy; to be sourced
# otherwise. test/unit/test_pages.py checks it against the options that there are.

_divvy_subcommands="lock elect partition status explain history doctor locks services serve announce plan
    bucket drain pin unpin move pause resume need set forget help"

_divvy_tls_options="--tls-ca --tls-cert --tls-key --tls-key-password-file --sasl-user --sasl-password-file
    --sasl-mechanism"

_divvy_operator_options="--wait --wait-timeout --dry-run --reason --json --connect --timeout --auth-file
    $_divvy_tls_options --verbose --acl --help"

_divvy_options() {
    case $1 in
    lock)
        echo "--connect --no-wait --timeout -E --conflict-exit-code --shared -n --slots --limit-policy --max-run
            --at-least --grace --hold --root --session-timeout --ensemble-tick --connect-timeout --auth-file
            $_divvy_tls_options --acl --no-death-watch --failover-delay --metrics --verbose --help"
        ;;
    elect)
        echo "--connect --data --prefer --once --grace --watch --step-down --timeout --root --session-timeout
            --ensemble-tick --connect-timeout --auth-file $_divvy_tls_options --acl --no-death-watch --failover-delay
            --metrics --verbose --help"
        ;;
    partition)
        echo "--items-from-command --items-interval --items-from-znode
            --connect --path --items-from --item --identifier --sessions --time-boundary --leave-boundary
            --session-timeout --ensemble-tick --allocate-timeout --connect-timeout --mode --assign --items-order
            --rejoin-delay --weight --zone --tags --cap --min-members --min-members-wait --max-moves --balance
            --load-command --load-interval
            --load-unit --load-floor --quarantine --handover-timeout --replace --drain --restart --standby
            --prepare-timeout --rejoin --auth-file $_divvy_tls_options --acl --events --json --timestamps
            --no-death-watch --failover-delay --metrics --verbose --help"
        ;;
    status)
        echo "--path --items-from --items-from-command --items-from-znode --item --json --format --watch --interval
            --wide --connect --timeout --auth-file $_divvy_tls_options --verbose --help"
        ;;
    explain)
        echo "--path --json --format --wide --connect --timeout --auth-file $_divvy_tls_options --verbose --help"
        ;;
    history)
        echo "--path --json --format --wide --connect --timeout --auth-file $_divvy_tls_options --verbose --help"
        ;;
    doctor)
        echo "--path --server-timeout --session-timeout --ensemble-tick --json --connect --timeout --auth-file
            $_divvy_tls_options --verbose --help"
        ;;
    locks)
        echo "--root --json --format --connect --timeout --auth-file $_divvy_tls_options --verbose --help"
        ;;
    services)
        echo "--root --healthy --json --format --connect --timeout --auth-file $_divvy_tls_options --verbose --help"
        ;;
    serve)
        echo "--path --below --listen --public --root --interval --connect --timeout --auth-file $_divvy_tls_options
            --verbose --help"
        ;;
    announce)
        echo "--role --load --load-command --ttl --id --address --port --root --connect --session-timeout
            --ensemble-tick --connect-timeout --auth-file $_divvy_tls_options --acl --metrics --verbose --help"
        ;;
    plan)
        echo "--path --members --join --leave --drain --weight --zone --tags --cap --items-from --item --loads --assign
            --max-moves --items-order --verbose --json --connect --timeout --auth-file $_divvy_tls_options --help"
        ;;
    bucket) echo "--keys-from --help" ;;
    drain)
        echo "--path --undo --weight $_divvy_operator_options"
        ;;
    need) echo "--path --undo $_divvy_operator_options" ;;
    pin | unpin | move | pause | resume | set | forget) echo "--path $_divvy_operator_options" ;;
    esac
}

# The values of an option where there are few, by subcommand and option.
_divvy_values() {
    case $1:$2 in
    plan:--assign) echo "plan rendezvous round_robin sticky" ;;
    *:--assign) echo "auto round_robin rendezvous" ;;
    *:--items-order) echo "bytes numeric" ;;
    *:--mode) echo "incremental eager" ;;
    *:--acl) echo "auto open creator readable" ;;
    *:--restart) echo "always on-failure never" ;;
    *:--balance) echo "cpu" ;;
    *:--limit-policy) echo "error stored provided" ;;
    esac
}

# Where the command begins that a subcommand runs: the index of its first word, or nothing.
_divvy_command_at() {
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            echo $((i + 1))
            return
        fi
        if [[ $1 == @(lock|elect) && ${COMP_WORDS[i]} != -* ]] && ! _divvy_takes_value "$1" "${COMP_WORDS[i - 1]}"; then
            echo $((i + 1)) # behind the name
            return
        fi
    done
}

_divvy_takes_value() {
    case $2 in
    --no-wait | --shared | --hold | --json | --timestamps | --watch | --wide | --healthy | --help | -h) return 1 ;;
    --undo | --wait | --dry-run | --once | --step-down | --public) return 1 ;;
    --verbose | --rejoin | --replace | --standby | --no-death-watch) return 1 ;;
    -*) return 0 ;;
    esac
    return 1
}

# File names may have spaces in them; lines are told apart here.
_divvy_offer_lines() {
    local IFS=$'\n'
    COMPREPLY=($(compgen "$1" -- "$2"))
}

_divvy() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} subcommand=${COMP_WORDS[1]} at
    COMPREPLY=()
    # Bash takes --option=value for three words.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$_divvy_subcommands --version --help" -- "$word"))
        return
    fi
    at=$(_divvy_command_at "$subcommand")
    if [[ -n $at ]]; then
        if ((COMP_CWORD == at)); then
            _divvy_offer_lines -c "$word"
        else
            _divvy_offer_lines -f "$word"
        fi
        return
    fi
    case $before in
    --auth-file | --tls-* | --sasl-password-file | --items-from | --keys-from | --events | --metrics)
        _divvy_offer_lines -f "$word"
        return
        ;;
    --load-command | --items-from-command)
        _divvy_offer_lines -c "$word"
        return
        ;;
    esac
    if _divvy_takes_value "$subcommand" "$before"; then
        COMPREPLY=($(compgen -W "$(_divvy_values "$subcommand" "$before")" -- "$word"))
        return
    fi
    if [[ $subcommand == help ]]; then
        COMPREPLY=($(compgen -W "${_divvy_subcommands% help}" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$(_divvy_options "$subcommand")" -- "$word"))
    fi
}

complete -o filenames -F _divvy divvy
