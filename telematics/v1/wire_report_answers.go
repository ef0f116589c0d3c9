package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"motorpool/telematics"
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

// decodeRepeated reads a final answer that a report repeats.
func decodeRepeated(raw json.RawMessage, received time.Time) (telematics.Answer, error) {
	w, err := readAnswer(raw)
	if err != nil {
		return telematics.Answer{}, err
	}
	w.Report = nil // the report around it says what is true now
	answer, _, err := w.answer(received)
	if err == nil && answer.State == telematics.Received {
		err = errors.New("decode answer: not a final one")
	}
	return answer, err
}
