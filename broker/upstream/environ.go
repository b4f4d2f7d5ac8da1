package upstream

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inherited are the variables that a server gets from Airlock's environment: those that
// programs need to find themselves, their caches and proxies. Others, such as Airlock's
// secrets, are not passed on. The list is sorted.
var inherited = []string{
	"ALL_PROXY", "HOME", "HTTPS_PROXY", "HTTP_PROXY", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LOGNAME",
	"NODE_EXTRA_CA_CERTS", "NO_PROXY", "NVM_DIR", "PATH", "SHELL", "SSL_CERT_DIR", "SSL_CERT_FILE", "TEMP", "TERM",
	"TMP",
	"TMPDIR", "TZ", "USER", "UV_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"all_proxy", "http_proxy", "https_proxy", "no_proxy", "npm_config_cache", "npm_config_prefix",
	"npm_config_registry",
	"npm_config_userconfig",
}

// childEnv returns the environment of a server's process, sorted: the inherited
// variables and over them the configured ones.
func childEnv(environ []string, configured map[string]string) []string {
	vars := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if _, ok := slices.BinarySearch(inherited, name); ok {
			vars[name] = value
		}
	}
	maps.Copy(vars, configured)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// findCommand looks a command up in the PATH of the environment that it will
// get. One with a slash is taken relative to dir.
func findCommand(command, dir string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		absolute, err := filepath.Abs(command)
		if err != nil {
			return "", err
		}
		return absolute, checkExecutable(absolute)
	}
	found := os.ErrNotExist
	for _, entry := range env {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, directory := range filepath.SplitList(list) {
			if !filepath.IsAbs(directory) {
				continue // a relative directory would let the working directory decide what runs
			}
			path := filepath.Join(directory, command)
			err := checkExecutable(path)
			if err == nil {
				return path, nil
			}
			if !os.IsNotExist(err) {
				found = err
			}
		}
	}
	return "", found
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return os.ErrPermission
	}
	return nil
}
