"""The name of a model, "provider/name": orders, pools, the price list and pages all write it so."""


def split_model(model: str) -> tuple[str, str]:
    """The provider and the name at the provider, which is empty where there is none."""
    provider, _, name = model.partition("/")
    return provider, name


def provider_of(model: str) -> str:
    return split_model(model)[0]


def name_of(model: str) -> str:
    """The name without the provider; all of it where no provider is named."""
    return split_model(model)[1] or model
