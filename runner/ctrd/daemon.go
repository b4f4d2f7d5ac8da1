package ctrd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/airlock-mcp/airlock/runner/posture"
)

// namespace is the containerd namespace that Airlock uses.
const namespace = "airlock"

// requestTimeout bounds questions that the daemon answers from memory.
const requestTimeout = 10 * time.Second

// daemon is a containerd that may start sandboxes.
type daemon struct {
	client  *containerd.Client
	address string
	facts
}

// facts are what was found out about a daemon.
type facts struct {
	snapshotter string
	users       posture.Users // of the daemon's user namespace
}

// connect returns the daemon that listens at address after it has looked at it.
func connect(ctx context.Context, address, snapshotter string) (*daemon, error) {
	// The client connects when it is used, and then hides in its error what is wrong.
	conn, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to containerd: %w", err)
	}
	conn.Close()
	client, err := containerd.New(address, containerd.WithDefaultNamespace(namespace),
		containerd.WithTimeout(requestTimeout))
	if err != nil {
		return nil, fmt.Errorf("connecting to containerd at %q: %w", address, err)
	}
	d := &daemon{client: client, address: address}
	if d.facts, err = d.look(ctx, snapshotter); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return d, nil
}

// look refuses a daemon of another generation, one whose processes this one
// cannot see, and one without the snapshotter.
func (d *daemon) look(ctx context.Context, snapshotter string) (found facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err = d.checkVersion(ctx); err == nil {
		found.users, err = d.checkPlace(ctx)
	}
	if err == nil {
		found.snapshotter, err = d.chooseSnapshotter(ctx, snapshotter)
	}
	if err != nil {
		return found, fmt.Errorf("looking at containerd at %q: %w", d.address, errgrpc.ToNative(err))
	}
	return found, nil
}

func (d *daemon) checkVersion(ctx context.Context) error {
	version, err := d.client.Version(ctx)
	if err != nil {
		return err
	}
	if major, _, _ := strings.Cut(strings.TrimPrefix(version.Version, "v"), "."); major != "2" {
		return fmt.Errorf("it is version %q, but this Airlock is made for version 2", version.Version)
	}
	return nil
}

// checkPlace proves that the daemon counts processes as this process does:
// otherwise nothing that it starts could be verified or limited. It returns the
// users that the daemon can give to sandboxes.
func (d *daemon) checkPlace(ctx context.Context) (posture.Users, error) {
	server, err := d.client.IntrospectionService().Server(ctx)
	if err != nil {
		return posture.Users{}, err
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return posture.Users{}, err
	}
	if theirs := fmt.Sprintf("pid:[%d]", server.GetPidns()); theirs != ours {
		return posture.Users{}, errors.New("it runs in another PID namespace, so what it starts cannot be verified")
	}
	users, err := posture.UsersOf(int(server.GetPid()))
	if err != nil {
		return posture.Users{}, err
	}
	_, err = users.Pick("")
	return users, err
}

// chooseSnapshotter finds the snapshotter that was asked for, or else the best one.
func (d *daemon) chooseSnapshotter(ctx context.Context, asked string) (string, error) {
	plugins, err := d.client.IntrospectionService().Plugins(ctx, "type==io.containerd.snapshotter.v1")
	if err != nil {
		return "", err
	}
	works := map[string]bool{}
	for _, plugin := range plugins.GetPlugins() {
		works[plugin.GetID()] = plugin.GetInitErr() == nil
	}
	wanted := []string{"overlayfs", "native"}
	if asked != "" {
		wanted = []string{asked}
	}
	for _, name := range wanted {
		if works[name] {
			return name, nil
		}
	}
	return "", fmt.Errorf("its snapshotter %s does not work", strings.Join(wanted, " or "))
}
