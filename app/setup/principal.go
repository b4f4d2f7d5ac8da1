package setup

import (
	"fmt"
	"os"
	"os/user"
)

// Principal returns the name of the user who runs Airlock.
func Principal() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid:%d", os.Getuid())
}
