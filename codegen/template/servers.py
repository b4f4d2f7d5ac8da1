
from sys import modules as MODULES

# Names here begin with a capital, because a server can have any other name.
ModuleType = type(MODULES[__name__])


class ServerUnavailable(Exception):
    """A server was used that did not answer when Airlock asked for its tools."""


def Load(path: str, name: str):
    """Return what the module `path` defines as `name`."""
    __import__(path)
    return getattr(MODULES[path], name)


class Function:
    # Stands for a function whose file is not loaded yet, and behaves like it in all
    # but its type. `from servers.a import *` of many tools would read every file.

    __slots__ = ("__where__",)

    def __init__(self, path, name):
        object.__setattr__(self, "__where__", (path, name))

    def __load__(self):
        return Load(*self.__where__)

    def __call__(self, *args, **kwargs):
        return self.__load__()(*args, **kwargs)

    def __getattr__(self, name):
        return self.__where__[1] if name in ("__name__", "__qualname__") else getattr(self.__load__(), name)

    def __setattr__(self, name, value):
        setattr(self.__load__(), name, value)

    def __get__(self, instance, owner=None):
        return self.__load__().__get__(instance, owner)

    def __eq__(self, other):
        return self is other or self.__load__() == (other.__load__() if type(other) is Function else other)

    def __hash__(self):
        return hash(self.__load__())

    def __repr__(self):
        return repr(self.__load__())

    def __reduce__(self):
        return Load, self.__where__

    # Instances do not call __getattr__ for attributes of the class.
    __class__ = property(lambda self: type(self.__load__()))  # type: ignore
    __doc__ = property(lambda self: self.__load__().__doc__)  # type: ignore
    __module__ = property(lambda self: self.__where__[0])  # type: ignore


class Server(ModuleType):
    """The package of one server. Each function loads from its own file on first use."""

    __files__: dict[str, str]
    __where__: dict[str, str]
    __aliases__: dict[str, str]

    # What every package offers, unless one of its tools has the name. Names that
    # begin with two underscores cannot be a tool's.
    __shared__ = ["ToolError"]

    @classmethod
    def __attach__(cls, name: str, files: dict[str, str], aliases: dict[str, str]):
        """Make the package `name` load what it offers when it is asked for.

        `files` maps each file to the names that it defines, its function first;
        `aliases` maps other names of functions to those names.
        """
        package = MODULES[name]
        content = vars(package)
        content["__files__"] = files
        content["__where__"] = {each: file for file, names in files.items() for each in names.split()}
        content["__aliases__"] = aliases
        # A tool can bear the names that its package needed until now.
        del content["_Server"], content["TYPE_CHECKING"]
        package.__class__ = cls

    @property
    def __all__(self):
        # A caller that reads this reads every function next.
        content = vars(self)
        for file, names in self.__files__.items():
            name = names.split()[0]
            if name not in content:
                content[name] = Function(f"{self.__name__}.{file}", name)
        return dir(self) + [each for each in self.__shared__ if each not in self.__aliases__]

    def __getattr__(self, name):
        wanted = self.__aliases__.get(name, name)
        if wanted in self.__where__:
            path = f"{self.__name__}.{self.__where__[wanted]}"
        elif wanted in self.__shared__:
            path = "client.result"  # which mcp_client takes it from, and which needs no event loop
        else:
            path = None
        if path:
            value = Load(path, wanted)
            setattr(self, name, value)
            return value
        raise AttributeError(
            f"{self.__name__} has no {name!r}; print(dir({self.__name__})) lists it all", name=name, obj=self)

    def __setattr__(self, name, value):
        # Importing a file binds its module here. The function of the same name
        # is what readers mean: `from servers.a import b` must not change with
        # an earlier `import servers.a.b`.
        if isinstance(value, ModuleType) and name in self.__files__:
            value = getattr(value, self.__files__[name].split()[0])
            if type(vars(self).get(name)) is Function:
                return
        super().__setattr__(name, value)

    def __dir__(self):
        return [names.split()[0] for names in self.__files__.values()]


class MissingServer(ModuleType):
    """The package of a server that did not answer: it imports, and raises on use."""

    __problem__: str

    @classmethod
    def __attach__(cls, name: str, problem: str):
        """Make every use of the package `name` raise ServerUnavailable."""
        package = MODULES[name]
        content = vars(package)
        content["__problem__"] = problem
        # Without a path, even an import from a file of the package comes here.
        del content["_MissingServer"], content["__path__"]
        package.__class__ = cls

    def __getattr__(self, name):
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        raise ServerUnavailable(self.__problem__)


def __getattr__(name):
    if name in __all__:
        __import__(f"{__name__}.{name}")
        return MODULES[f"{__name__}.{name}"]
    raise AttributeError(f"there is no server module {name!r}; there are: {', '.join(__all__) or 'none'}")
