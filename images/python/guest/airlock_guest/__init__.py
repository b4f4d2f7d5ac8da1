"""The guest: fetches one program from the host, runs it, and reports how it ended.

- `session`: the order of things, from start to exit;
- `link`: the guest's own connection to the host;
- `execute`: runs the code as `__main__`;
- `source`: reads a program as what it means where Python would refuse it;
- `outcome`: converts the end of the code into the report to the host;
- `output`: streams that lose nothing; `native` is its part below Python, `printing` a print that costs little;
- `notes`: explains why there is probably no result;
- `repair`: makes the interpreter usable again after the code;
- `failure`: describes an exception; `hints` suggests how to repair the code;
- `bundle`: loads modules from one file;
- `on_import`: changes modules of the standard library without loading them.

The code shares this process. It may replace builtins, close descriptors and
break modules; it cannot make the host believe anything but its own result.
The guest takes references to everything that it needs after the code has run before the code runs.
"""
