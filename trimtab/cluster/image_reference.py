"""Splits the name of an image as container runtimes do."""


def split_registry(image: str) -> tuple[str, str]:
    """Returns (registry, rest) of an image's name; the registry is empty if the name has none.

    A first part with a dot, a port or upper case is a registry, and so is `localhost`
    (github.com/distribution/reference, `splitDockerDomain`).
    """
    first, slash, rest = image.partition("/")
    is_registry = bool(slash) and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    return (first, rest) if is_registry else ("", image)
