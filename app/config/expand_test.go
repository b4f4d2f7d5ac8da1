package config

import "testing"

func TestExpand(t *testing.T) {
	d := &decoder{dir: "/home/ann/project/.vscode", env: envOf(map[string]string{
		"TOKEN": "hunter2", "EMPTY": "", "NESTED": "${TOKEN}", "HOME": "/home/ann",
	})}
	for text, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"${TOKEN}":                  "hunter2",
		"a${TOKEN}b${TOKEN}c":       "ahunter2bhunter2c",
		"${MISSING:-default}":       "default",
		"${MISSING:-}":              "",
		"${EMPTY}":                  "",
		"${EMPTY:-default}":         "default",
		"${TOKEN:-default}":         "hunter2",
		"${MISSING:-a:-b}":          "a:-b",
		"${NESTED}":                 "${TOKEN}", // a value is never expanded again
		"$${TOKEN}":                 "${TOKEN}",
		"$$${TOKEN}":                "$${TOKEN}",
		"pa$$word$":                 "pa$$word$",
		"$TOKEN":                    "$TOKEN",
		"}{$":                       "}{$",
		"${env:TOKEN}":              "hunter2",
		"${userHome}/x":             "/home/ann/x",
		"${workspaceFolder}/server": "/home/ann/project/server",
	} {
		got, err := d.expand(text)
		if err != nil || got != want {
			t.Errorf("expand(%q): got %q, %v, want %q", text, got, err, want)
		}
	}
}
