# Part of zookeeper-local: Java, and the classes of a server. SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

readonly LOGGER_JAR=/usr/share/java/slf4j-simple.jar
readonly QUICK_START=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m)

# Sets JAVA, or says what to install.
check_ground() {
    JAVA=java
    if [[ -n ${JAVA_HOME:-} ]]; then JAVA=$JAVA_HOME/bin/java; fi
    command -v "$JAVA" >/dev/null ||
        die 2 "no Java ($JAVA); install Debian's package default-jre-headless"
    local jar
    local -a jars
    IFS=: read -ra jars <<<"$JAR"
    for jar in "${jars[@]}"; do
        [[ -r $jar ]] && continue
        die 2 "no ZooKeeper ($jar); install Debian's package zookeeper (or libzookeeper-java, which holds the jar)"
    done
}

# Sets CLASSES. The manifest of Debian's jar names all that it needs but a backend of slf4j.
choose_classes() {
    CLASSES=$JAR
    if [[ -r $LOGGER_JAR ]]; then CLASSES+=:$LOGGER_JAR; fi
}

# Notes which classes servers load, one alone and an ensemble, and has Java write these.
verb_classes() {
    local servers folder
    check_ground
    choose_classes
    TEMP=$(mktemp -d)
    trap 'rm -rf -- "$TEMP"' EXIT
    for servers in 1 3; do
        folder=$(unset DIVVY_ZOOKEEPER_CLASSES
            JAVA_TOOL_OPTIONS=-XX:DumpLoadedClassList=$TEMP/%p \
                "$SELF" start --servers "$servers" --parent $$ | sed -n 's/^ZOOKEEPER_LOCAL_DIR=//p')
        "$SELF" stop "$folder"
    done
    grep -hv '^#' "$TEMP"/pid* | sort -u >"$TEMP/list"
    "$JAVA" "${QUICK_START[@]}" -Xshare:dump -XX:SharedClassListFile="$TEMP/list" \
        -XX:SharedArchiveFile="$TEMP/classes" -cp "$CLASSES" >"$TEMP/log" 2>&1 || die 1 "$(tail -n 3 "$TEMP/log")"
    mv -f -- "$TEMP/classes" "$1"
}
