package telematics

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// maxAnswers is how many command results of a report are read [TEL-3].
const maxAnswers = 8

func (d *reportDecoder) answers(s *scan, received time.Time) {
	raw := s.said[commandsPlace.index]
	if raw == nil || isNull(raw) {
		return
	}
	if raw[0] != '[' {
		d.drop("commands", "not a list of answers")
		return
	}
	list := s.within(nil, raw)
	if len(list) > maxAnswers {
		d.drop("commands", fmt.Sprintf("more than %d answers; the last ones were read", maxAnswers))
		list = list[len(list)-maxAnswers:]
	}
	for _, raw := range list {
		answer, err := decodeRepeated(s, raw, received)
		if err != nil {
			d.drop("commands", err.Error())
			continue
		}
		d.report.Answers = append(d.report.Answers, answer)
	}
}

// decodeRepeated reads a final answer that a report repeats.
func decodeRepeated(s *scan, raw json.RawMessage, received time.Time) (Answer, error) {
	w, ok := plainAnswer(s, raw)
	if !ok {
		w = wireAnswer{}
		if err := json.Unmarshal(raw, &w); err != nil {
			return Answer{}, fmt.Errorf("decode answer: %w", err)
		}
	}
	w.Report = nil // the report around it says what is true now
	answer, _, err := w.answer(received)
	if err == nil && answer.State == Received {
		err = errors.New("decode answer: not a final one")
	}
	return answer, err
}

// plainAnswer reads an answer of strings alone, as units write it; a full report holds eight.
// What is written in any other way is not ok, and left to json.Unmarshal, which says the same
// of these at six times the price.
func plainAnswer(s *scan, raw json.RawMessage) (w wireAnswer, ok bool) {
	if raw[0] != '{' {
		return w, false
	}
	var few [10]json.RawMessage
	members := s.within(few[:0], raw)
	for i := 0; i+1 < len(members); i += 2 {
		text, ok := unquote(members[i+1])
		if !ok {
			return w, false
		}
		switch string(members[i]) {
		case `"command_id"`:
			w.Command = text
		case `"status"`:
			w.Status = State(text)
		case `"at"`:
			w.At = text
		case `"reason"`:
			w.Reason = text
		case `"detail"`:
			w.Detail = text
		default:
			return w, false
		}
	}
	return w, true
}
