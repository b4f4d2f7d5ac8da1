package images

import (
	"fmt"
	"os/exec"
)

// MissingToolError reports that a program for building images is not installed.
type MissingToolError struct {
	Tool    string // the program
	Package string // the Debian package that has it
}

// Error names the missing program.
func (e *MissingToolError) Error() string {
	return fmt.Sprintf("building images needs the program %q, which is not installed", e.Tool)
}

// Hint returns the command to type.
func (e *MissingToolError) Hint() string {
	return fmt.Sprintf("apt-get install %s", e.Package)
}

func findTool(tool, debianPackage string) (string, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		return "", &MissingToolError{Tool: tool, Package: debianPackage}
	}
	return path, nil
}
