#!/bin/sh
# Installs what is used beside Python packages, where it is missing and may be installed:
#   java     for Spark
#   network  for hosts that tests make: namespaces, bridges, rules for what does not pass
# Never fails: what needs it says so itself.

may_install() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1
}

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

update() {
    DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null 2>&1
}

bring_java() {
    if [ -n "$JAVA_HOME" ] && [ -x "$JAVA_HOME/bin/java" ] || java -version >/dev/null 2>&1; then
        return
    fi
    if may_install; then
        echo "installing Java for Spark" >&2
        for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
            install "$package" && return
            update
        done
    fi
    echo "there is no Java, and it could not be installed: tests and commands that need Spark are left out" >&2
}

bring_network() {
    if command -v ip >/dev/null 2>&1 && command -v nft >/dev/null 2>&1 && command -v ethtool >/dev/null 2>&1; then
        return
    fi
    if may_install && unshare --net true 2>/dev/null; then
        echo "installing tools for hosts of their own: iproute2, nftables, ethtool" >&2
        install iproute2 nftables ethtool && return
        update
        install iproute2 nftables ethtool && return
    fi
    echo "ip, nft and ethtool are not all there, and could not be installed: tests of hosts are left out" >&2
}

for what in "$@"; do
    "bring_$what"
done
exit 0
