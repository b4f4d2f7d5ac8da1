package hosts

// written is an entry of a file that Airlock writes: its own configuration, or a
// host's. The order of the fields is that in the file.
type written struct {
	Name    string            `json:"-" toml:"-" yaml:"name,omitempty"`    // Goose
	Enabled bool              `json:"-" toml:"-" yaml:"enabled,omitempty"` // Goose
	Type    string            `json:"type,omitempty" toml:"type,omitempty" yaml:"type,omitempty"`
	Command string            `json:"command,omitempty" toml:"command,omitempty" yaml:"command,omitempty"`
	Cmd     string            `json:"-" toml:"-" yaml:"cmd,omitempty"` // Goose
	Args    []string          `json:"args,omitempty" toml:"args,omitempty" yaml:"args,omitempty"`
	Cwd     string            `json:"cwd,omitempty" toml:"cwd,omitempty" yaml:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty" toml:"env,omitempty" yaml:"env,omitempty"`
	EnvVars []string          `json:"-" toml:"env_vars,omitempty" yaml:"-"` // Codex: names of variables to pass on
	Envs    map[string]string `json:"-" toml:"-" yaml:"envs,omitempty"`     // Goose
	URL     string            `json:"url,omitempty" toml:"url,omitempty" yaml:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty" toml:"headers,omitempty" yaml:"headers,omitempty"`
	// StartTimeout and CallTimeout are keys of Airlock's configuration only.
	StartTimeout string `json:"-" toml:"-" yaml:"startTimeout,omitempty"`
	CallTimeout  string `json:"-" toml:"-" yaml:"callTimeout,omitempty"`
	// Timeout is the time for a call: in seconds for Cline and Goose, in milliseconds for Gemini CLI, OpenCode and Zed.
	Timeout     int      `json:"timeout,omitempty" toml:"-" yaml:"timeout,omitempty"`
	ToolTimeout int      `json:"-" toml:"tool_timeout_sec,omitempty" yaml:"-"` // Codex, seconds
	Tools       []string `json:"tools,omitempty" toml:"-" yaml:"-"`            // Copilot CLI
}
