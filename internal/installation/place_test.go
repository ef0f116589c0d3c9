package installation

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
)

// scene is a place of instance aaa of installation 11, which has heard nothing yet. Times are since
// its first question. Claims are {installation}-{tenure}-{instance}-{beat}; the database has beat 5
// of each instance.
type scene struct {
	*place
	*member
	began time.Time
	log   strings.Builder
}

func newScene() *scene {
	s := &scene{member: (&hub{}).join(), began: time.Now()}
	s.place = &place{
		Place: s.member, name: "mqtt", log: slog.New(slog.NewTextHandler(&s.log, nil)), instance: "aaa",
		own: claim{"11", none, "aaa", 5}, tenure: none, kin: map[string]int64{}, asked: s.began,
	}
	s.Admit(errUndecided)
	return s
}

// holding has the scene hold the place since a tenure.
func (s *scene) holding(tenure string) *scene {
	s.take(s.began)
	s.tenure = tenure
	return s
}

// at hears claims at a time, and judges them; what is asked begins with a question mark.
func (s *scene) at(since time.Duration, claims ...string) *scene {
	for _, c := range claims {
		if asker, asks := strings.CutPrefix(c, "?"); asks {
			s.askers = append(s.askers, asker)
		} else {
			s.place.heard = append(s.place.heard, c)
		}
	}
	s.judge(s.began.Add(since), Beats{"aaa": 5, "bbb": 5, "xxx": 5})
	return s
}

func (s *scene) state() string {
	switch {
	case s.holds && s.admitted == nil:
		return "has it since " + s.tenure
	case s.holds || s.admitted == nil:
		return "neither"
	case s.refused != nil && s.tenure == none:
		return "refused"
	}
	return "undecided"
}

// heard is claims that are heard at a time, with blanks between them.
type heard struct {
	at     time.Duration
	claims string
}

// eachSecond returns a claim with one beat after the other.
func eachSecond(from, to time.Duration, claim string) (all []heard) {
	for at, beat := from, 6; at <= to; at, beat = at+time.Second, beat+1 {
		all = append(all, heard{at, fmt.Sprintf("%s-%d", claim, beat)})
	}
	return all
}

func TestPlace_Judges(t *testing.T) {
	const second = time.Second
	// Before and after the place's patience.
	const soon, later = 299 * time.Millisecond, 300 * time.Millisecond
	const earlier, late = "22-100-xxx", "22-900-xxx"
	for name, c := range map[string]struct {
		since string // the instance has the place; empty: it asks
		heard []heard
		want  string
	}{
		"before the answers have come":      {"", []heard{{soon, ""}}, "undecided"},
		"no answer":                         {"", []heard{{later, ""}}, "has it"},
		"the instance's claims, and others": {"", []heard{{soon, "11-100-aaa-4 33-100-aaa-9 x 22-100-xxx 22-1-xxx-!"}}, "undecided"},

		"of the same database":                       {"", []heard{{soon, "11-100-bbb-5"}}, "has it"},
		"of a copy":                                  {"", []heard{{soon, "11-100-bbb-6"}}, "refused"},
		"of a copy that lost beats":                  {"", []heard{{soon, "11-100-bbb-6"}, {later, "11-100-bbb-5"}}, "has it"},
		"of another one":                             {"", []heard{{soon, "22-100-xxx-5"}}, "refused"},
		"of another one, and an earlier of the same": {"", []heard{{soon, "22-100-xxx-6 11-099-bbb-5"}}, "has it"},
		"and a later of the same":                    {"", []heard{{soon, "22-100-xxx-6 11-099-bbb-5 11-101-bbb-5"}}, "has it"},
		"of another one, and as early of the same":   {"", []heard{{soon, "22-100-xxx-6 11-100-bbb-5"}}, "refused"},
		"of another one, and later of the same":      {"", []heard{{soon, "22-100-xxx-6 11-101-bbb-5"}}, "refused"},
		"the other one gives it up":                  {"", []heard{{soon, "22-100-xxx-6"}, {later, "22-100-xxx-0"}}, "has it"},
		"the other one does not give it up":          {"", []heard{{soon, "22-100-xxx-6"}, {later, "22-100-xxx-!"}}, "refused"},
		"one of two others gives it up":              {"", []heard{{soon, "22-100-xxx-6"}, {later, "22-100-yyy-0"}}, "refused"},

		"once, repeated by the place": {"", []heard{{0, "22-100-xxx-6"}, {expires - 1, ""}}, "refused"},
		"once, and repeated no more":  {"", []heard{{0, "22-100-xxx-6"}, {expires, ""}}, "has it"},
		"the same claim twice": {
			"", []heard{{0, "22-100-xxx-6"}, {5 * second, "22-100-xxx-6"}, {5*second + expires, ""}}, "has it",
		},
		"two others, once each":               {"", []heard{{0, "22-100-xxx-6 22-100-yyy-7"}, {expires, ""}}, "has it"},
		"one that lives, silent for long":     {"", []heard{{0, "22-100-xxx-6 22-100-xxx-7"}, {silence - 1, ""}}, "refused"},
		"one that lived, silent for too long": {"", []heard{{0, "22-100-xxx-6 22-100-xxx-7"}, {silence, ""}}, "has it"},

		"has it, and a later one comes":       {"500", eachSecond(0, provenBy, late), "has it since 500"},
		"has it, and one as early comes":      {"500", eachSecond(0, provenBy, "22-500-xxx"), "has it since 500"},
		"has it, and an earlier one is back":  {"500", eachSecond(0, provenBy, earlier), "refused"},
		"an earlier one is not back for long": {"500", eachSecond(second, provenBy, earlier), "has it since 500"},
		"an earlier one is back for the second": {
			"500", append(eachSecond(0, provenBy-second, earlier), heard{2 * provenBy, earlier + "-20"}), "has it since 500",
		},
		"an earlier one is silent again": {
			"500", append(eachSecond(0, provenBy-second, earlier), heard{2*provenBy - second, ""}), "has it since 500",
		},
		"and then a third one comes": {
			"500", append(eachSecond(0, provenBy-second, earlier), heard{provenBy, "33-100-zzz-6"}), "has it since 500",
		},
		"one claim of an earlier one": {"500", []heard{{0, "22-100-xxx-6"}, {provenBy, "22-100-xxx-6"}}, "has it since 500"},

		"the same database had it before": {"500", []heard{{0, "11-100-bbb-1"}, {1, "11-100-bbb-4"}}, "has it since 100"},
		"a copy that has two beats more":  {"500", []heard{{0, "11-100-bbb-1"}, {1, "11-100-bbb-3"}}, "has it since 500"},
		"the same database, in another order": {
			"500", []heard{{0, "11-100-bbb-4"}, {1, "11-100-bbb-1"}, {2, "11-100-bbb-4"}}, "has it since 100",
		},
		"the same database had it after that":    {"500", []heard{{0, "11-900-bbb-1"}, {1, "11-900-bbb-5"}}, "has it since 500"},
		"the same database asks, and had it not": {"", []heard{{soon, "11-0-bbb-1"}, {soon, "11-0-bbb-5"}}, "has it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			if c.since != "" {
				s.holding(c.since)
			}
			for _, h := range c.heard {
				s.at(h.at, strings.Fields(h.claims)...)
			}
			if got := s.state(); !strings.HasPrefix(got, c.want) {
				t.Errorf("the instance: %s, want %s", got, c.want)
			}
		})
	}
	unasked := newScene()
	unasked.place.asked = time.Time{}
	assert.Equal(t, unasked.at(time.Hour).state(), "undecided", "before it could ask, the instance")
}

func TestPlace_TellsOfOthers(t *testing.T) {
	s := newScene().at(0, "?11-0-bbb-5", "?11-0-aaa-9", "?x")
	assert.Equal(t, s.sees(s.began), false, "its own instances are others")
	s.at(0, "?22-0-xxx-1").at(1, "?22-0-xxx-2")
	assert.Equal(t, s.sees(s.began.Add(expires)), true, "another one has asked")
	assert.Equal(t, s.sees(s.began.Add(expires+1)), false, "it has not asked for long")
	s.at(0, "22-100-xxx-6").at(1, "11-100-bbb-6")
	assert.Equal(t, s.sees(s.began.Add(expires)), true, "another one has the place")
	assert.Equal(t, s.sees(s.began.Add(expires+1)), false, "it had the place long ago")
	assert.Equal(t, s.describe(s.rival), "a copy of this database, or another primary of it; instance bbb", "a copy")
	s.at(1 + expires)
	s.withdraw(t.Context(), ErrFormer)
	other := s.join()
	for range 2 * withdrawals {
		s.withdraw(t.Context(), ErrFormer)
	}
	assert.EqualSlices(t, other.heard, slices.Repeat([]string{"11-0-aaa-0"}, withdrawals-1), "heard of the withdrawal")
	assert.Equal(t, s.state(), "refused", "after the withdrawal the instance")
	for text, want := range map[string]int{
		"another installation wants to use this place, and is refused": 1, "id 22, instance xxx": 2,
		"another installation is in the way": 1, "no other installation any more": 1, "place given up": 1,
	} {
		assert.Equal(t, strings.Count(s.log.String(), text), want, "lines of the log with %q", text)
	}
	quiet := newScene().at(time.Second)
	assert.Equal(t, quiet.log.String(), "", "the log of an instance that is alone")
}

// A place that cannot be asked is open to those that have it, and the others say why it is not.
func TestPlace_ThatCannotBeAsked(t *testing.T) {
	s := newScene()
	s.setCut(true)
	s.exchange(t.Context(), "11", 5)
	assert.Equal(t, fmt.Sprint(s.admitted), errUndecided.Error()+": not connected", "before it was asked: admitted")
	s.at(0, "22-100-xxx-6")
	s.exchange(t.Context(), "11", 5)
	assert.Equal(t, s.state(), "refused", "an instance that was refused")
	s = newScene().holding("500")
	s.setCut(true)
	s.exchange(t.Context(), "11", 5)
	assert.Equal(t, s.state(), "has it since 500", "an instance that has the place")
}
