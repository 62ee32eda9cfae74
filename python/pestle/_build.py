# SPDX-License-Identifier: Apache-2.0
"""Extensions that setuptools builds by CMake: pestle.extension.CMakeExtension."""

import os
import pathlib
import shutil
import subprocess

from setuptools import Extension
from setuptools.command.build_ext import build_ext


class CMakeExtension(Extension):
    """A library that the CMakeLists.txt of a folder builds, beside the package that is
    the first part of its name: ``CMakeExtension("pestle_axpby._ops")``."""

    def __init__(self, name, sourcedir=""):
        super().__init__(name, sources=[])
        self.sourcedir = os.path.abspath(sourcedir)


def _config():
    """The folder of pestleConfig.cmake: in the wheel, or of the prefix that the package
    is installed in."""
    home = pathlib.Path(__file__).resolve().parent
    folders = [home / "lib/cmake/pestle"]
    folders += [p / "cmake/pestle" for p in home.parents]
    for folder in folders:
        if (folder / "pestleConfig.cmake").exists():
            return folder
    return None


class CMakeBuild(build_ext):
    """build_ext of such: ``cmdclass={"build_ext": pestle.extension.CMakeBuild}``."""

    def build_extension(self, ext):
        if not isinstance(ext, CMakeExtension):
            super().build_extension(ext)
            return
        out = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve().parent
        build = pathlib.Path(self.build_temp).resolve() / ext.name
        build.mkdir(parents=True, exist_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        config = _config()
        found = [f"-Dpestle_DIR={config}"] if config else []
        subprocess.run(["cmake", "-S", ext.sourcedir, "-B", build,
                        "-DCMAKE_BUILD_TYPE=Release", *found,
                        *filter(None, os.environ.get("CMAKE_ARGS", "").split())],
                       check=True)
        subprocess.run(["cmake", "--build", build], check=True)
        for end in ("so", "dylib", "dll"):
            for library in build.glob(f"lib*.{end}"):
                shutil.copy(library, out)

    def copy_extensions_to_source(self):
        """For pip install -e: what build_extension() put beside the package."""
        for ext in self.extensions:
            folder = pathlib.Path(*ext.name.split(".")[:-1])
            built = pathlib.Path(self.build_lib, folder)
            for library in (*built.glob("lib*.so"), *built.glob("lib*.dylib")):
                shutil.copy(library, folder)

    def get_outputs(self):
        built = pathlib.Path(self.build_lib)
        return [str(x) for ext in self.extensions
                for x in built.joinpath(*ext.name.split(".")[:-1]).glob("lib*")]
