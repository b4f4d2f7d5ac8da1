package runsc

import (
	"context"
	"net"
	"os"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/runner"
)

// network is the network configuration of gVisor's kernel (gVisor, runsc/boot, CreateLinksAndRoutesArgs).
type network struct {
	LoopbackLinks    []link
	FDBasedLinks     []link        `json:",omitempty"`
	Defaultv4Gateway *defaultRoute `json:",omitempty"`
	IsRestore        bool
}

type link struct {
	Name      string
	Addresses []address
	Routes    []route

	// Of FDBasedLinks only.
	MTU         int `json:",omitempty"`
	NumChannels int `json:",omitempty"` // descriptors of the link
}

type address struct {
	Address   net.IP
	PrefixLen int
}

type route struct {
	Destination net.IPNet
	Gateway     net.IP `json:",omitempty"`
}

type defaultRoute struct {
	Route route
	Name  string
}

// setNetwork gives the kernel its network devices: "lo" as Linux makes it, and, with Spec.Network, one whose packets go
// to this process. The kernel has no other socket of a network.
func (p *process) setNetwork(ctx context.Context, kernel *control, restore bool) error {
	v4, v6 := net.CIDRMask(8, 32), net.CIDRMask(128, 128)
	config := network{
		LoopbackLinks: []link{{
			Name:      "lo",
			Addresses: []address{{net.IPv4(127, 0, 0, 1), 8}, {net.IPv6loopback, 128}},
			Routes: []route{
				{Destination: net.IPNet{IP: net.IPv4(127, 0, 0, 0), Mask: v4}},
				{Destination: net.IPNet{IP: net.IPv6loopback, Mask: v6}},
			},
		}},
		IsRestore: restore,
	}
	var files []*os.File
	if p.spec.Network != nil {
		files = []*os.File{p.spec.Network}
		mask := net.CIDRMask(egress.Subnet.Bits(), 32)
		config.FDBasedLinks = []link{{
			Name: runner.NetworkDevice, MTU: egress.MTU, NumChannels: len(files),
			Addresses: []address{{egress.Sandbox.AsSlice(), egress.Subnet.Bits()}},
			Routes:    []route{{Destination: net.IPNet{IP: egress.Subnet.Addr().AsSlice(), Mask: mask}}},
		}}
		config.Defaultv4Gateway = &defaultRoute{Name: runner.NetworkDevice, Route: route{
			Destination: net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			Gateway:     egress.Gateway.AsSlice(),
		}}
	}
	return kernel.call(ctx, methodNetwork, config, files...)
}
