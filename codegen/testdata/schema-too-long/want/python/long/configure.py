"""Tool "configure" of server "long", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "long"
TOOL_NAME = "configure"
DEFINITION_DIGEST = "sha256:1c5be23aad0488ad04d3442e1301c4b14c2b0ac671d91d5e07fa486acb982e8a"


class ConfigureInputSetting0(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting1(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting2(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting3(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSection0(TypedDict):
    setting0: NotRequired[ConfigureInputSetting0]
    setting1: NotRequired[ConfigureInputSetting1]
    setting2: NotRequired[ConfigureInputSetting2]
    setting3: NotRequired[ConfigureInputSetting3]


class ConfigureInputSetting0_2(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting1_2(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting2_2(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting3_2(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSection1(TypedDict):
    setting0: NotRequired[ConfigureInputSetting0_2]
    setting1: NotRequired[ConfigureInputSetting1_2]
    setting2: NotRequired[ConfigureInputSetting2_2]
    setting3: NotRequired[ConfigureInputSetting3_2]


class ConfigureInputSetting0_3(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting1_3(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting2_3(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting3_3(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSection2(TypedDict):
    setting0: NotRequired[ConfigureInputSetting0_3]
    setting1: NotRequired[ConfigureInputSetting1_3]
    setting2: NotRequired[ConfigureInputSetting2_3]
    setting3: NotRequired[ConfigureInputSetting3_3]


class ConfigureInputSetting0_4(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting1_4(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting2_4(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSetting3_4(TypedDict):
    value: NotRequired[str]
    unit: NotRequired[str]


class ConfigureInputSection3(TypedDict):
    setting0: NotRequired[ConfigureInputSetting0_4]
    setting1: NotRequired[ConfigureInputSetting1_4]
    setting2: NotRequired[ConfigureInputSetting2_4]
    setting3: NotRequired[ConfigureInputSetting3_4]


class ConfigureInput(TypedDict):
    section0: Required[ConfigureInputSection0]
    section1: NotRequired[ConfigureInputSection1]
    section2: NotRequired[ConfigureInputSection2]
    section3: NotRequired[ConfigureInputSection3]


async def configure(arguments: ConfigureInput | None = None, /, **named: Any) -> ToolResult:
    """Configure everything

    Shortened here. The whole definition:
    await client.catalog.get_tool_definition("long", "configure")
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "configure", named, ConfigureInput)
