"""The compiled kernel for tests: built from `packaging/fast` into a temporary folder, where there is a compiler."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ordercast.daemon.sealed import CompiledAesGcm
from ordercast.model.kernel import COMPILED, MODULE, PURE
from ordercast.trace import kernel as trace_kernel
from ordercast.wire import kernel, pure

FAST = Path(__file__).parents[1] / "packaging" / "fast"
KERNELS = (PURE, COMPILED)
FLAGS = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror")


def compiler() -> str | None:
    """Return the C compiler that Python was built with, or any other."""
    names = [shlex.split(sysconfig.get_config_var("CC") or "cc")[0], "cc", "gcc", "clang"]
    return next((found for name in names if (found := shutil.which(name))), None)


@cache
def built() -> Path | str:
    """Return the folder with the extension, or why there is none. `ORDERCAST_CFLAGS` adds options, say
    for a sanitizer."""
    found, include = compiler(), sysconfig.get_paths()["include"]
    if found is None:
        return "there is no C compiler"
    if not Path(include, "Python.h").exists():
        return "the headers of Python are not installed"
    folder = Path(tempfile.mkdtemp(prefix="ordercast-fast-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sources = sorted(map(str, (FAST / "src").glob("*.c")))
    options = [*FLAGS, *shlex.split(os.environ.get("ORDERCAST_CFLAGS", "")), "-I", include]
    done = subprocess.run([found, *options, *sources, "-o", str(folder / f"{MODULE}.so")], check=False)
    if done.returncode:
        pytest.exit("the compiled kernel cannot be built")  # whoever shrinks a failure would build it over and over
    return folder


@cache
def _loaded(folder: Path) -> ModuleType:
    path = str(folder / f"{MODULE}.so")
    spec = spec_from_file_location(MODULE, path, loader=ExtensionFileLoader(MODULE, path))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled_kernel() -> ModuleType:
    """Return the extension; the test is skipped where it cannot be built."""
    folder = built()
    if isinstance(folder, str):
        pytest.skip(folder)
    return _loaded(folder)


def compiled_cipher() -> CompiledAesGcm:
    """Return the extension's cipher; the test is skipped where the system's library lacks."""
    kernel_found = compiled_kernel()
    if not hasattr(kernel_found, "Gcm"):
        pytest.skip("there is no OpenSSL 3 for the compiled kernel")
    return CompiledAesGcm(kernel_found)


@contextmanager
def running(name: str) -> Iterator[None]:
    """Have one of the kernels run, whichever was chosen at the start."""
    compiled = compiled_kernel() if name == COMPILED else None
    twins = [
        (module, function, twin)
        for module in (kernel, trace_kernel)
        for function, twin in module.functions(compiled).items()
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module, function, twin in twins:
            patch.setattr(module, function, twin)
        yield


def is_pure() -> bool:
    """Tell whether the kernel in Python runs at present."""
    return kernel.lay is pure.lay
