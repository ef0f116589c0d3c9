package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// wireAnswer is the JSON of an answer [ACK-1].
type wireAnswer struct {
	Command string           `json:"command_id"`
	Status  telematics.State `json:"status"`
	At      string           `json:"at"`
	Reason  string           `json:"reason,omitempty"`
	Detail  string           `json:"detail,omitempty"`
	Report  json.RawMessage  `json:"report,omitempty"`
	Trace   traceparent      `json:"tp,omitempty"`
}

// traceparent is for correlation only, so it never makes an answer malformed [ACK-5].
type traceparent string

// UnmarshalJSON reads a text of a valid length; anything else counts as none. It never fails.
func (t *traceparent) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || len(text) > maxTraceparent || !telematics.IsText(text) {
		text = ""
	}
	*t = traceparent(text)
	return nil
}

// maxTraceparent is more than any version of W3C Trace Context needs; version 0 has 55 bytes.
const maxTraceparent = 128

// EncodeAnswer returns the message that a unit publishes as its answer.
func EncodeAnswer(a telematics.Answer) []byte {
	w := wireAnswer{
		Command: a.Command.String(), Status: a.State, At: telematics.FormatTime(a.At), Reason: a.Reason,
		Detail: a.Detail, Trace: traceparent(a.Trace),
	}
	if a.Report != nil {
		w.Report = EncodeReport(*a.Report)
	}
	return encode(w)
}

// DecodeAnswer decodes an answer that arrived at received. Values of its report that are not valid
// are left out and listed; the answer itself must be valid. It fails where the message is too
// large, or is no valid answer.
func DecodeAnswer(message []byte, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	if len(message) > telematics.MaxMessage {
		return telematics.Answer{}, nil, errTooLarge
	}
	w, err := readAnswer(message)
	if err != nil {
		return telematics.Answer{}, nil, err
	}
	return w.answer(received)
}

func readAnswer(text []byte) (w wireAnswer, err error) {
	if err := json.Unmarshal(text, &w); err != nil {
		return w, fmt.Errorf("decode answer: %w", err)
	}
	return w, nil
}

func (w wireAnswer) answer(received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	id, err := uuid.Parse(w.Command)
	if err != nil {
		return telematics.Answer{}, nil, fmt.Errorf("decode answer: command_id: %w", err)
	}
	switch w.Status {
	case telematics.Received, telematics.Succeeded, telematics.Rejected, telematics.Failed:
	default:
		return telematics.Answer{}, nil, fmt.Errorf("decode answer: status %.32q is none of an answer", w.Status)
	}
	for _, s := range []string{w.Reason, w.Detail} {
		if !telematics.IsText(s) {
			return telematics.Answer{}, nil, errors.New("decode answer: reason or detail is too long, or holds a NUL")
		}
	}
	a := telematics.Answer{
		Command: id, State: w.Status, At: telematics.VehicleTime(parseTime(w.At), received), Reason: w.Reason,
		Detail: w.Detail, Trace: string(w.Trace),
	}
	if len(w.Report) == 0 || isNull(w.Report) {
		return a, nil, nil
	}
	report, dropped, err := DecodeReport(w.Report, received)
	if err != nil {
		return a, []telematics.Dropped{{Field: "report", Reason: err.Error()}}, nil
	}
	report.Answers = nil
	a.Report = &report
	return a, dropped, nil
}

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
	list, _ := s.within(nil, raw)
	if len(list) > maxAnswers {
		d.drop("commands", fmt.Sprintf("more than %d answers; the last ones were read", maxAnswers))
		list = list[len(list)-maxAnswers:]
	}
	for _, raw := range list {
		answer, err := decodeRepeated(raw, received)
		if err != nil {
			d.drop("commands", err.Error())
			continue
		}
		d.report.Answers = append(d.report.Answers, answer)
	}
}

// decodeRepeated decodes a final answer that a report repeats.
func decodeRepeated(raw json.RawMessage, received time.Time) (telematics.Answer, error) {
	w, err := readAnswer(raw)
	if err != nil {
		return telematics.Answer{}, err
	}
	w.Report = nil // the report that contains the answer is newer
	answer, _, err := w.answer(received)
	if err == nil && answer.State == telematics.Received {
		err = errors.New("decode answer: not a final one")
	}
	return answer, err
}
