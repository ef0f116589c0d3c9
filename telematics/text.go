package telematics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Printable returns a text on one line, with spaces for characters that control a terminal, and
// without those that change the order in which text is shown, or are not seen. It is valid UTF-8.
func Printable(s string) string {
	if isPlain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case isHidden(r):
			return -1
		}
		return r // utf8.RuneError for what is not valid
	}, s)
}

// isPlain reports whether a text, as nearly all are, has nothing but printable ASCII.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// isHidden reports whether a character is a control (C0, DEL, C1), one of bidirectional text, or
// invisible. Joiners are none: scripts and emojis need them.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(invisible, r)
}

var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x200b, Hi: 0x200b, Stride: 1},
		{Lo: 0x2060, Hi: 0x206f, Stride: 1},
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}},
}

// EscapeJSON returns JSON of the same meaning, in which characters that Printable changes are
// escaped.
func EscapeJSON(text []byte) []byte {
	if isPlain(text) || !bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x7f && isHidden(r) }) {
		return text
	}
	escaped := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < 0x7f || !isHidden(r): // C0 is only between values
			escaped = append(escaped, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		text = text[size:]
	}
	return escaped
}

// DecodeAnswer decodes an answer by the message's dialect. Its texts are Printable. It fails as the
// dialect does.
func (m Message) DecodeAnswer(received time.Time) (Answer, []Dropped, error) {
	a, dropped, err := m.Dialect.DecodeAnswer(m, received)
	a.makePrintable()
	return a, dropped, err
}

// DecodeReport decodes a report by the message's dialect. Its texts are Printable. It fails as the
// dialect does.
func (m Message) DecodeReport(received time.Time) (Report, []Dropped, error) {
	r, dropped, err := m.Dialect.DecodeReport(m, received)
	r.makePrintable()
	return r, dropped, err
}

// DecodePresence decodes a presence by the message's dialect. Its texts are Printable; the session
// and the keys are not changed, because they are compared. It fails as the dialect does.
func (m Message) DecodePresence(received time.Time) (Presence, error) {
	p, err := m.Dialect.DecodePresence(m, received)
	p.Firmware = Printable(p.Firmware)
	return p, err
}

func (a *Answer) makePrintable() {
	a.Reason, a.Detail = Printable(a.Reason), Printable(a.Detail)
	if a.Report != nil {
		a.Report.makePrintable()
	}
}

func (r *Report) makePrintable() {
	for field, value := range r.Values {
		switch value := value.(type) {
		case string:
			if printable := Printable(value); printable != value {
				r.Values[field] = printable
			}
		case []string:
			if slices.ContainsFunc(value, isNotPrintable) {
				r.Values[field] = printableList(value)
			}
		case map[string]any:
			if printable, changed := printableJSON(value); changed {
				r.Values[field] = printable
			}
		}
	}
	for i, a := range r.Alarms {
		r.Alarms[i] = Alarm{Kind: cmp.Or(strings.Trim(Printable(a.Kind), " ."), unnamed), Text: Printable(a.Text)}
	}
	for i := range r.Answers {
		r.Answers[i].makePrintable()
	}
}

// unnamed is the kind of an alarm that its unit does not name: it is no less an alarm.
const unnamed = "unnamed"

func isNotPrintable(s string) bool { return Printable(s) != s }

// printableList drops elements of which nothing is left.
func printableList(list []string) []string {
	printable := make([]string, 0, len(list))
	for _, s := range list {
		if s = Printable(s); s != "" {
			printable = append(printable, s)
		}
	}
	return printable
}

// printableJSON returns a JSON value with printable keys and texts, and whether it differs.
func printableJSON(v any) (printable any, changed bool) {
	switch v := v.(type) {
	case string:
		s := Printable(v)
		return s, s != v
	case []any:
		list := slices.Clone(v)
		for i := range list {
			var differs bool
			list[i], differs = printableJSON(list[i])
			changed = changed || differs
		}
		return list, changed
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) { // of two equal ones always the same stays
			value, differs := printableJSON(v[key])
			name := Printable(key)
			object[name], changed = value, changed || differs || name != key
		}
		return object, changed
	}
	return v, false
}

// ignoredInSearches are blanks and hyphens, as they are in the normal form NFKD.
const ignoredInSearches = " \t-\u00AD\u2010\u2012\u2013\u2014\u2015\u2212"

// Clean returns a text as it is stored: printable, without spaces around it, and with one spelling
// of Ü, so that texts that look equal compare equal.
func Clean(s string) string { return strings.TrimSpace(norm.NFC.String(Printable(s))) }

// Plain returns a text as searches compare it: plates and names are found however people write
// them. Letter case, blanks, hyphens and the normal form of Unicode make no difference. Postgres
// has the same as plain_text.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(ignoredInSearches, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
}

// Words returns a duration as people write it, in at most two units: 350 ms, 4.2 s, 1 h 12 min.
func Words(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Words(-d)
	case d.Round(time.Millisecond) < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d.Microseconds())/1000)
	case d.Round(time.Second/10) < time.Minute:
		return fmt.Sprintf("%g s", d.Round(time.Second/10).Seconds())
	case d.Round(time.Second) < time.Hour:
		return units(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < 2*day:
		return units(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	default:
		return units(d.Round(time.Hour), day, "days", time.Hour, "h")
	}
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	if d%large == 0 {
		return fmt.Sprintf("%d %s", d/large, largeName)
	}
	return fmt.Sprintf("%d %s %d %s", d/large, largeName, d%large/small, smallName)
}
