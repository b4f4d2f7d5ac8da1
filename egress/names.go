package egress

import (
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names maps the names that a sandbox may resolve to their addresses in the sandbox.
type names struct {
	mu        sync.Mutex
	any       bool // names that are asked for are added, until there are maxNames
	byName    map[string]netip.Addr
	byAddress map[netip.Addr]string
	last      netip.Addr
}

// firstName is the address of the first name. The others follow. Only this sandbox knows them, and no packet to them
// leaves it. Programs that refuse names with special-use addresses, against forged requests to internal servers, take
// them for addresses of the internet, where the names do lead: package reach checks that for each connection.
var firstName = netip.MustParseAddr("11.0.0.1")

// newNames gives each name an address.
func newNames(hosts []Host) *names {
	n := &names{byName: map[string]netip.Addr{}, byAddress: map[netip.Addr]string{}, last: firstName.Prev()}
	for _, host := range hosts {
		n.addLocked(host.Name)
	}
	return n
}

// open sets whether other names get an address, too.
func (n *names) open(any bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.any = any
}

// maxNames is how many names a network has, if every name has an address.
const maxNames = 4096

func (n *names) addLocked(name string) netip.Addr {
	if address, ok := n.byName[name]; ok {
		return address
	}
	n.last = n.last.Next()
	n.byName[name], n.byAddress[n.last] = n.last, name
	return n.last
}

// addressOf returns the address of a name.
func (n *names) addressOf(name string) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	address, known := n.byName[name]
	if !known && n.any && validName(name) && len(n.byName) < maxNames {
		return n.addLocked(name), true
	}
	return address, known
}

// nameAt returns the name for which an address stands.
func (n *names) nameAt(address netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, known := n.byAddress[address]
	return name, known
}

// answerTTL is the time in seconds for which answers hold. The addresses never change.
const answerTTL = 60

// answer returns the response to a DNS message (RFC 1035), or nil if it is not a query. asked is the name of its
// question, and known reports whether it has an address.
func (n *names) answer(query []byte) (response []byte, asked string, known bool) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response {
		return nil, "", false
	}
	reply := dnsmessage.Header{
		ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired,
		RecursionAvailable: true,
	}
	question, err := p.Question()
	if err != nil || header.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, netip.Addr{}), "", false
	}
	asked = strings.ToLower(strings.TrimSuffix(question.Name.String(), "."))
	address, known := n.addressOf(asked)
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	if question.Type != dnsmessage.TypeA || question.Class != dnsmessage.ClassINET {
		address = netip.Addr{} // the name exists, without records of this type
	}
	return build(reply, &question, address), asked, known
}

func build(header dnsmessage.Header, question *dnsmessage.Question, address netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, header)
	b.EnableCompression()
	if question != nil {
		if b.StartQuestions() != nil || b.Question(*question) != nil {
			return nil
		}
		if address.IsValid() {
			record := dnsmessage.ResourceHeader{Name: question.Name, Class: question.Class, TTL: answerTTL}
			if b.StartAnswers() != nil || b.AResource(record, dnsmessage.AResource{A: address.As4()}) != nil {
				return nil
			}
		}
	}
	message, err := b.Finish()
	if err != nil {
		return nil
	}
	return message
}
