package images

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// ErrUnlocked is returned if a lock file does not contain the requested packages. `airlock
// images build` adds them.
var ErrUnlocked = errors.New("the packages are not locked")

// MaxWanted limits the number of packages that can be requested for one image.
const MaxWanted = 200

// Extra contains the packages that a user requests in addition to the definition of an image.
// The zero value has none.
type Extra struct {
	Wanted  []string // as requested
	Wheels  []Package
	Modules []byte // a lock file of npm, version 3
	Server  bool   // the image is of a contained server: it has directories for mounts
}

// wantedFile lists the requested packages for the hints of the guest, one per line.
const wantedFile = guestRoot + "/packages.txt"

// empty reports whether there is nothing to add.
func (e Extra) empty() bool { return len(e.Wheels) == 0 && len(e.Modules) == 0 }

// apply adds the packages to the inputs of an image, which makes it a different image.
func (e Extra) apply(in inputs) inputs {
	if e.empty() && !e.Server {
		return in
	}
	in.wheels, in.modules, in.wanted = slices.Concat(in.wheels, e.Wheels), e.Modules, e.Wanted
	in.files = maps.Clone(in.files)
	in.files[wantedFile] = []byte(strings.Join(e.Wanted, "\n") + "\n")
	prefix := in.directory()
	if e.Server {
		prefix = serverPrefix
		for _, dir := range mountDirs {
			in.files[dir[1:]+"/.airlock"] = nil
		}
	}
	in.dir = prefix + "+" + in.packagesKey()[:12]
	return in
}

// serverPrefix begins the names of the directories with the images of servers.
const serverPrefix = "server"

// mountDirs are empty directories of the images of servers. Mounts are below them, at the same path as on the host.
var mountDirs = [...]string{"/data", "/home", "/media", "/mnt", "/root", "/srv", "/Users"}

// MountDirs returns the directories below which live mounts can be in the images of servers.
func MountDirs() []string { return append(mountDirs[:], "/tmp", Workspace) }

// Mountable reports whether a live mount can be at a path in the image of a server.
func Mountable(at string) bool {
	return path.Clean(at) == at && slices.ContainsFunc(MountDirs(),
		func(dir string) bool { return strings.HasPrefix(at, dir+"/") })
}

// The forms in which a package may be asked for: a name, and which versions of it. Nothing
// else that pip or npm would understand: no path, no address, no option.
var (
	pythonRequirement = lazyregexp.New(
		`^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?(\[[A-Za-z0-9][A-Za-z0-9._,-]{0,98}\])?` +
			`( ?(===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]{1,60}(, ?(===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]{1,60})*)?$`)
	nodeRequirement = lazyregexp.New(
		`^(@[a-z0-9~][a-z0-9._~-]{0,98}/)?[a-z0-9~][a-z0-9._~-]{0,98}(@[\^~]?[0-9x*][0-9A-Za-z.*+-]{0,60})?$`)
)

// CheckRequirement returns an error if requirement is not a valid package requirement for an image
// of the language.
func CheckRequirement(language, requirement string) error {
	switch language {
	case "python":
		if pythonRequirement.MatchString(requirement) {
			return nil
		}
		return fmt.Errorf("%.100q is not a name of a Python package with versions, such as pandas or pandas>=2,<3",
			requirement)
	case "node":
		if nodeRequirement.MatchString(requirement) {
			return nil
		}
		return fmt.Errorf("%.100q is not a name of an npm package with a version, such as lodash or lodash@^4.17.0",
			requirement)
	}
	return fmt.Errorf("there are no packages for the language %.40q", language)
}

// checkRequirements is CheckRequirement for all that is asked for.
func checkRequirements(language string, wanted []string) error {
	if len(wanted) > MaxWanted {
		return fmt.Errorf("%d packages are asked for, more than %d", len(wanted), MaxWanted)
	}
	for _, requirement := range wanted {
		if err := CheckRequirement(language, requirement); err != nil {
			return err
		}
	}
	return nil
}

// nodeDependency splits what is asked for into npm's name and range of versions.
func nodeDependency(requirement string) (name, versions string) {
	if i := strings.LastIndex(requirement, "@"); i > 0 {
		return requirement[:i], requirement[i+1:]
	}
	return requirement, "*"
}
