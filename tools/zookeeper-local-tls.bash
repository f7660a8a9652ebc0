# The TLS of a private ZooKeeper: a CA of its own, and what is in its zoo.cfg. SPDX-License-Identifier: Apache-2.0
#
# DIR/tls has
#   ca.pem, ca.key          the CA
#   server.pem, server.key  of all servers, for 127.0.0.1 and localhost; server.both has the two in one file
#   client.pem, client.key  of a client
# shellcheck shell=bash

readonly TLS_DAYS=30

# certify FOLDER NAME SUBJECT EXTENSIONS: a key, and a certificate by the CA of the folder.
certify() {
    local folder=$1 name=$2
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$3" \
        -keyout "$folder/$name.key" -out "$folder/$name.csr"
    openssl x509 -req -in "$folder/$name.csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial \
        -days "$TLS_DAYS" -extfile <(printf '%s\n' "$4") -out "$folder/$name.pem"
    rm -f -- "$folder/$name.csr"
}

make_certificates() {
    local folder=$1
    (
        umask 077
        mkdir "$folder"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "$TLS_DAYS" \
            -subj '/CN=CA of zookeeper-local' -keyout "$folder/ca.key" -out "$folder/ca.pem"
        certify "$folder" server /CN=localhost 'subjectAltName=DNS:localhost,IP:127.0.0.1'
        certify "$folder" client /CN=client 'extendedKeyUsage=clientAuth'
        cat "$folder/server.key" "$folder/server.pem" >"$folder/server.both"
    ) >"$1.log" 2>&1 || {
        tail -n 12 -- "$1.log" >&2
        die 1 "openssl cannot make the certificates of --tls"
    }
    rm -f -- "$1.log"
}

# prepare_tls FOLDER WHICH: the certificates of another folder, or new ones.
prepare_tls() {
    if [[ $2 == new ]]; then
        make_certificates "$1"
    else
        [[ -r $2/ca.pem && -r $2/server.both ]] || die 2 "--tls-files: $2 has no ca.pem and server.both"
        ln -s -- "$(realpath -- "$2")" "$1"
    fi
}

# tls_lines FOLDER PORT: sets TLS to what zoo.cfg has of it. Its pem readers go by the end of a file's name, so the
# types are told.
tls_lines() {
    TLS="secureClientPort=$2
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.clientAuth=need
ssl.keyStore.location=$1/server.both
ssl.keyStore.type=PEM
ssl.trustStore.location=$1/ca.pem
ssl.trustStore.type=PEM
"
}

# What the manifest of Debian's jar does not name.
tls_classpath() {
    local jar
    for jar in netty-codec netty-resolver netty-transport-native-unix-common; do
        printf ':/usr/share/java/%s.jar' "$jar"
    done
}

# tell TICK_MS: what is started, as lines for eval.
tell() {
    local plain connect
    plain=$(cat "$DIR"/*/address | paste -sd,)
    connect=$plain
    if [[ -d $DIR/tls ]]; then connect=$(cat "$DIR"/*/secure | paste -sd,); fi
    printf 'DIVVY_CONNECT=%s\nDIVVY_ENSEMBLE_TICK_MS=%s\nZOOKEEPER_LOCAL_DIR=%q\n' "$connect" "$1" "$DIR"
    if [[ ! -d $DIR/tls ]]; then return; fi
    printf 'DIVVY_TLS_%s_FILE=%q\n' CA "$DIR/tls/ca.pem" CERTIFICATE "$DIR/tls/client.pem" KEY "$DIR/tls/client.key"
    printf 'SSL_CERT_FILE=%q\nSSL_CERT_DIR=/nonexistent\nZOOKEEPER_LOCAL_PLAIN=%s\n' "$DIR/tls/ca.pem" "$plain"
}

check_tls_ground() {
    command -v openssl >/dev/null || die 2 "--tls: no openssl; install Debian's package openssl"
    [[ -r /usr/share/java/netty-codec.jar ]] || die 2 "--tls: no Netty; install Debian's package libnetty-java"
}
