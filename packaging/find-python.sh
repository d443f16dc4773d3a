#!/bin/sh
# Prints the Python to make .venv with: python3, unless that is one built without profile-guided optimisation (pyenv's
# are) and the distribution has its own, which is, and runs all here a fifth faster (docs/guides/make-it-fast.md).
can_do() {
    "$1" -c "import ensurepip, sys, sysconfig, venv; sys.exit(sys.version_info < (3, 11) or not ($2))" 2>/dev/null
}
if ! can_do python3 "'--enable-optimizations' in (sysconfig.get_config_var('CONFIG_ARGS') or '')" &&
    can_do /usr/bin/python3 "True"; then
    echo /usr/bin/python3
else
    echo python3
fi
