"""How this package's modules are saved and loaded."""

from __future__ import annotations

from typing import Any

from sentence_transformers.base.modules import Module
from typing_extensions import Self


class SavedModule(Module):
    """A module whose constructor takes what ``config_keys`` names, and whose weights and buffers are all the rest."""

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration and weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Read what :meth:`save` wrote, from a folder or the Hub."""
        place: dict[str, Any] = {
            "subfolder": subfolder,
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        module = cls(**{**(init_defaults or {}), **cls.load_config(model_name_or_path, **place)})
        loaded: Self = cls.load_torch_weights(model_name_or_path, model=module, **place)
        return loaded
