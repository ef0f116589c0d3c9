package devstack

import (
	"fmt"
	"strings"
)

// verb is an access to a topic, as a client requests it or a rule grants it.
type verb uint8

const (
	read verb = 1 << iota
	write
	deny verb = 0
)

var verbs = map[string]verb{"read": read, "write": write, "readwrite": read | write, "deny": deny}

type rule struct {
	verb  verb
	topic string // in a pattern, %u stands for the user name and %c for the client id
}

// access is a Mosquitto access file. Topics that it does not list are denied.
type access struct {
	users    map[string][]rule
	patterns []rule
}

func parseAccess(text string) (access, error) {
	a := access{users: map[string][]rule{}}
	// Rules above the first user line apply to anonymous clients, which no listener accepts.
	user := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		keyword, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return access{}, fmt.Errorf("access file, line %d: %q lacks its value", i+1, keyword)
		}
		switch keyword {
		case "user":
			user = rest
		case "topic":
			a.users[user] = append(a.users[user], parseRule(rest))
		case "pattern":
			a.patterns = append(a.patterns, parseRule(rest))
		default:
			return access{}, fmt.Errorf("access file, line %d: unknown keyword %q", i+1, keyword)
		}
	}
	return a, nil
}

func parseRule(text string) rule {
	if word, topic, ok := strings.Cut(text, " "); ok {
		if v, known := verbs[word]; known {
			return rule{v, strings.TrimSpace(topic)}
		}
	}
	return rule{read | write, text}
}

// may reports whether the file grants a client an access to a topic, or to every topic that a
// filter matches.
func (a access) may(user, clientID string, want verb, filter string) bool {
	filter, ok := withoutShare(filter)
	if !ok {
		return false
	}
	if allowed, decided := decide(a.users[user], want, filter); decided {
		return allowed
	}
	// A name with a wildcard in it would turn the pattern into rights over every unit.
	if strings.ContainsAny(user+clientID, "+#") {
		return false
	}
	names := strings.NewReplacer("%u", user, "%c", clientID)
	patterns := make([]rule, len(a.patterns))
	for i, r := range a.patterns {
		patterns[i] = rule{r.verb, names.Replace(r.topic)}
	}
	allowed, _ := decide(patterns, want, filter)
	return allowed
}

// decide evaluates a list of rules, denials first as Mosquitto does. decided is false if none
// matches.
func decide(rules []rule, want verb, filter string) (allowed, decided bool) {
	for _, r := range rules {
		if r.verb == deny && covers(r.topic, filter) {
			return false, true
		}
	}
	for _, r := range rules {
		if r.verb&want != 0 && covers(r.topic, filter) {
			return true, true
		}
	}
	return false, false
}

// withoutShare strips the $share/{group}/ of a shared subscription: a group gives no rights.
func withoutShare(filter string) (string, bool) {
	prefix, rest, shared := strings.Cut(filter, "/")
	if !strings.EqualFold(prefix, "$share") {
		return filter, true
	}
	_, topic, ok := strings.Cut(rest, "/")
	return topic, shared && ok && topic != ""
}

// covers reports whether all topics that filter matches are matched by the rule's topic too.
func covers(topic, filter string) bool {
	if strings.HasPrefix(filter, "$") != strings.HasPrefix(topic, "$") {
		return false
	}
	for {
		wanted, topicRest, topicMore := strings.Cut(topic, "/")
		if wanted == "#" {
			return true
		}
		given, filterRest, filterMore := strings.Cut(filter, "/")
		if wanted != given && (wanted != "+" || given == "#") {
			return false
		}
		if !filterMore {
			return !topicMore || topicRest == "#" // "a/#" matches "a" itself
		}
		if !topicMore {
			return false
		}
		topic, filter = topicRest, filterRest
	}
}
