package egress

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// names maps the names that a sandbox may resolve to addresses that stand for them.
type names struct {
	byName    map[string]netip.Addr
	byAddress map[netip.Addr]string
}

// newNames gives each name an address behind the gateway's and the sandbox's.
func newNames(hosts []Host) *names {
	n := &names{map[string]netip.Addr{}, map[netip.Addr]string{}}
	next := netip.MustParseAddr("198.18.1.0")
	for _, host := range hosts {
		if _, ok := n.byName[host.Name]; !ok {
			next = next.Next()
			n.byName[host.Name], n.byAddress[next] = next, host.Name
		}
	}
	return n
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
	address, known := n.byName[asked]
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
