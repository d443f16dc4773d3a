#!/bin/sh
# Installs Java for Spark where it is missing and may be installed. Never fails: what needs Java says so itself.
if [ -n "$JAVA_HOME" ] && [ -x "$JAVA_HOME/bin/java" ] || java -version >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Java for Spark" >&2
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 && exit 0
        DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null 2>&1
    done
fi
echo "there is no Java, and it could not be installed: tests and commands that need Spark are left out" >&2
exit 0
