package mosquitto_test

import (
	"slices"
	"strings"
	"testing"

	"motorpool/mosquitto"
	"motorpool/telematics/dialects"
)

// A denied subscription keeps a connection from being established, for the units of all protocols.
func TestServiceRules_GrantEverySubscriptionOfEachProtocol(t *testing.T) {
	var granted []string
	for line := range strings.Lines(mosquitto.ServiceACL) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "topic" && strings.HasPrefix(words[1], "read") {
			granted = append(granted, words[2])
		}
	}
	for _, d := range dialects.Spoken {
		said := d.Filters()
		for _, filter := range slices.Concat([]string{said.Answers, said.Presence}, said.Reports) {
			covers := func(rule string) bool {
				above, all := strings.CutSuffix(rule, "#")
				return rule == filter || all && strings.HasPrefix(filter, above)
			}
			if filter != "" && !slices.ContainsFunc(granted, covers) {
				t.Errorf("service.acl has no line: topic read %s (protocol %s)", filter, d.Protocol())
			}
		}
	}
}
