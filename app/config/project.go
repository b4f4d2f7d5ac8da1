package config

import (
	"os"
	"path/filepath"
)

// projectFiles are the files that are in the directory of a project.
var projectFiles = []string{"package.json", "pyproject.toml", "setup.py", "requirements.txt"}

// maxProjectLevels is how many directories above a script are searched for a project.
const maxProjectLevels = 4

// projectOf returns the directory of the project that a script is part of: the nearest one with a file of projectFiles,
// or else the directory of the script.
func projectOf(script string) string {
	directory := filepath.Dir(script)
	for range maxProjectLevels {
		for _, name := range projectFiles {
			if _, err := os.Stat(filepath.Join(directory, name)); err == nil {
				return directory
			}
		}
		directory = filepath.Dir(directory)
	}
	return filepath.Dir(script)
}
