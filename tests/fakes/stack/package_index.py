"""An index of packages in a folder, as pip and uv read one."""

import zipfile
from collections.abc import Sequence
from pathlib import Path


class PackageIndex:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def url(self) -> str:
        return self._folder.as_uri()

    def add(self, name: str, version: str, needs: Sequence[str] = ()) -> None:
        """A wheel with one empty module."""
        place = self._folder / name
        place.mkdir(parents=True, exist_ok=True)
        info = f"{name}-{version}.dist-info"
        required = "".join(f"Requires-Dist: {need}\n" for need in needs)
        with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.py", "")
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}"
            )
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        links = (f'<a href="{wheel.name}">{wheel.name}</a>' for wheel in sorted(place.glob("*.whl")))
        (place / "index.html").write_text("\n".join(links))
