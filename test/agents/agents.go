// Package agents runs the programs of examples/agents with a model that is scripted.
package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
)

// program is what the model writes. The model does not know its result.
const program = "result = sum(n * n for n in range(1, 101))"

var (
	// toolName matches the name of run_code as an agent offers it: some put the server's name before it.
	toolName = regexp.MustCompile(`"name":\s*"([\w-]*run_code)"`)
	// number matches what the program returns.
	number = regexp.MustCompile(`\b\d{6}\b`)
)

// model is a scripted model behind the HTTP APIs of OpenAI (Chat Completions, Responses) and Anthropic (Messages). It
// first calls run_code with a program and then answers with the program's result.
type model struct {
	calls   atomic.Int32 // of run_code
	answers atomic.Int32
}

// turn is one message of the model: a call of a tool, or an answer.
type turn struct{ tool, arguments, text string }

func (m *model) next(request []byte) (turn, error) {
	var whole any
	if err := json.Unmarshal(request, &whole); err != nil {
		return turn{}, err
	}
	if returned := toolResult(whole); returned != nil {
		text, err := json.Marshal(returned)
		m.answers.Add(1)
		return turn{text: fmt.Sprintf("The sum is %s.", number.Find(text))}, err
	}
	name := toolName.FindSubmatch(request)
	if name == nil {
		return turn{}, fmt.Errorf("the request offers no run_code: %.2000s", request)
	}
	m.calls.Add(1)
	arguments, err := json.Marshal(map[string]string{"language": "python", "code": program})
	return turn{tool: string(name[1]), arguments: string(arguments)}, err
}

// toolResult returns the result of a tool that a request has, or nil.
func toolResult(value any) any {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if found := toolResult(item); found != nil {
				return found
			}
		}
	case object:
		if v["role"] == "tool" || v["type"] == "function_call_output" || v["type"] == "tool_result" {
			return v
		}
		for _, name := range []string{"messages", "input", "content"} {
			if found := toolResult(v[name]); found != nil {
				return found
			}
		}
	}
	return nil
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	format := map[string]func(turn) any{"/chat/completions": chatCompletion, "/responses": response,
		"/messages": message}[r.URL.Path[strings.LastIndex(r.URL.Path, "/v1")+len("/v1"):]]
	if format == nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	said, err := m.next(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked struct{ Stream bool }
	if err := json.Unmarshal(request, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if asked.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		streamMessage(w, said)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(format(said)) // a client that has gone needs no answer
}

type object = map[string]any

// chatCompletion is an answer of OpenAI's Chat Completions.
func chatCompletion(said turn) any {
	message, why := object{"role": "assistant", "content": said.text}, "stop"
	if said.tool != "" {
		why = "tool_calls"
		message["tool_calls"] = []object{{"id": "call_1", "type": "function",
			"function": object{"name": said.tool, "arguments": said.arguments}}}
	}
	return object{"id": "chatcmpl_1", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []object{{"index": 0, "finish_reason": why, "message": message}},
		"usage":   object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
}

// response is an answer of OpenAI's Responses.
func response(said turn) any {
	item := object{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": said.text, "annotations": []any{}}}}
	if said.tool != "" {
		item = object{"id": "fc_1", "type": "function_call", "call_id": "call_1", "status": "completed",
			"name": said.tool, "arguments": said.arguments}
	}
	return object{"id": "resp_1", "object": "response", "created_at": 1, "model": "scripted", "status": "completed",
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{},
		"output": []object{item}, "parallel_tool_calls": false, "tool_choice": "auto", "tools": []any{},
		"temperature": 1, "top_p": 1,
		"usage": object{"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 1,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 2}}
}

// message is an answer of Anthropic's Messages.
func message(said turn) any {
	content, why := object{"type": "text", "text": said.text}, "end_turn"
	if said.tool != "" {
		content = object{"type": "tool_use", "id": "toolu_1", "name": said.tool,
			"input": json.RawMessage(said.arguments)}
		why = "tool_use"
	}
	return object{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
		"content": []object{content}, "stop_reason": why, "stop_sequence": nil,
		"usage": object{"input_tokens": 1, "output_tokens": 1}}
}

// streamMessage is message as a stream of events.
func streamMessage(w io.Writer, said turn) {
	whole := message(said).(object)
	block := whole["content"].([]object)[0]
	delta := object{"type": "text_delta", "text": said.text}
	if said.tool != "" {
		delta = object{"type": "input_json_delta", "partial_json": said.arguments}
		block["input"] = object{}
	} else {
		block["text"] = ""
	}
	why := whole["stop_reason"]
	whole["content"], whole["stop_reason"] = []any{}, nil
	for _, event := range []object{
		{"type": "message_start", "message": whole},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": why, "stop_sequence": nil},
			"usage": object{"output_tokens": 1}},
		{"type": "message_stop"},
	} {
		data, _ := json.Marshal(event) // of values that are JSON already
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
	}
}
