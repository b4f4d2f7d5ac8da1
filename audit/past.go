package audit

import (
	"encoding/json"
	"maps"
	"slices"
)

// maxPast is the maximum number of calls that EachPast remembers.
const maxPast = 100_000

// EachPast calls visit for the selected calls, in the order in which they ended, with their arguments. The
// arguments are nil if they were not kept, were removed or erased, or differ from the log's hash. Of more
// than 100,000 calls, it visits the newest. The error is ErrNoArgumentsKey, that of visit, or a failure to
// read the log.
func EachPast(dir, keys string, opts ReportOptions, visit func(Record, json.RawMessage) error) error {
	reader, err := openKept(dir, keys)
	if err != nil {
		return err
	}
	calls := map[string]Record{} // by ID
	err = eachAct(dir, opts, func(record, _ Record) error {
		if record.CallID == "" || record.ArgumentsHash == "" {
			return nil
		}
		record.Arguments = nil
		calls[record.CallID] = record
		if len(calls) > maxPast+maxPast/10 {
			for _, old := range ordered(calls)[:maxPast/10] {
				delete(calls, old.CallID)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	values := map[string]json.RawMessage{}
	reader.each(func(k keptArguments) {
		call, ok := calls[k.CallID]
		if !ok || call.RunID != k.RunID {
			return
		}
		if text, ok := reader.proven(k, call.ArgumentsHash); ok {
			values[k.CallID] = text
		}
	})
	for _, call := range ordered(calls) {
		if err := visit(call, values[call.CallID]); err != nil {
			return err
		}
	}
	return nil
}

// ordered returns records in their order in the log.
func ordered(records map[string]Record) []Record {
	return slices.SortedFunc(maps.Values(records), func(a, b Record) int { return int(a.Seq) - int(b.Seq) })
}
