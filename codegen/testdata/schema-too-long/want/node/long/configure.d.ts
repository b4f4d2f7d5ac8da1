import type { ToolResult } from "../../client/mcp_client.js";

/** Tool "configure" of server "long", wrapped by Airlock. Definition: sha256:1c5be23aad0488ad04d3442e1301c4b14c2b0ac671d91d5e07fa486acb982e8a. */

export interface ConfigureInput {
  section0: ConfigureInputSection0;
  section1?: ConfigureInputSection1;
  section2?: ConfigureInputSection2;
  section3?: ConfigureInputSection3;
}

export interface ConfigureInputSection0 {
  setting0?: ConfigureInputSetting0;
  setting1?: ConfigureInputSetting1;
  setting2?: ConfigureInputSetting2;
  setting3?: ConfigureInputSetting3;
}

export interface ConfigureInputSetting0 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting1 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting2 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting3 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSection1 {
  setting0?: ConfigureInputSetting0_2;
  setting1?: ConfigureInputSetting1_2;
  setting2?: ConfigureInputSetting2_2;
  setting3?: ConfigureInputSetting3_2;
}

export interface ConfigureInputSetting0_2 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting1_2 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting2_2 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting3_2 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSection2 {
  setting0?: ConfigureInputSetting0_3;
  setting1?: ConfigureInputSetting1_3;
  setting2?: ConfigureInputSetting2_3;
  setting3?: ConfigureInputSetting3_3;
}

export interface ConfigureInputSetting0_3 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting1_3 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting2_3 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting3_3 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSection3 {
  setting0?: ConfigureInputSetting0_4;
  setting1?: ConfigureInputSetting1_4;
  setting2?: ConfigureInputSetting2_4;
  setting3?: ConfigureInputSetting3_4;
}

export interface ConfigureInputSetting0_4 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting1_4 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting2_4 {
  value?: string;
  unit?: string;
}

export interface ConfigureInputSetting3_4 {
  value?: string;
  unit?: string;
}

/**
 * Configure everything
 *
 * Shortened here. The whole definition:
 * await catalog.getToolDefinition({ serverId: "long", name: "configure" })
 */
export declare function configure(args: ConfigureInput): Promise<ToolResult<unknown>>;
