// Package pages renders the pages of the sign-in, in the language of their reader. They need no
// script.
package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"

	"golang.org/x/text/language"

	"motorpool/httpapi/signin"
	"motorpool/operators"
)

// Page is a page of the sign-in. Its texts are in English: Render translates them.
type Page struct {
	Title          string
	Message, Words string // a format, and its argument; empty: none
	Link, Label    string // where to go; empty: nowhere else
	Follow         bool   // go there immediately
	Action, Button string // of the form; empty: none
	Fields         []Field
	Hint           string
}

// Field is an input of the form.
type Field struct {
	Name, Label, Type, Value string
	Complete                 string // what a password manager fills in
	Fixed                    bool
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:12vh auto;padding:0 1rem}` +
	`label{display:block;margin:1rem 0}input,button{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;min-height:2.75rem}` +
	`[role=alert]{border-left:4px solid;padding-left:.75rem}`

var styleHash = sha256.Sum256([]byte(style))

// policy lets the pages run no script, load nothing, be framed by none, and send their form to
// the service alone.
var policy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; " +
	"style-src 'sha256-" + base64.StdEncoding.EncodeToString(styleHash[:]) + "'"

var layout = template.Must(template.New("").Funcs(template.FuncMap{"style": func() template.CSS { return style }}).Parse(`<!doctype html>
<html lang="{{.Language}}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
{{if .Follow}}<meta http-equiv="refresh" content="0;url={{.Link}}">
{{end}}<title>Motorpool</title>
<style>{{style}}</style>
<main>
<h1>{{with .Title}}{{$.T .}}{{else}}Motorpool{{end}}</h1>
{{with .Message}}<p role="alert">{{$.T . $.Words}}</p>
{{end}}{{if .Action}}{{$focus := true}}<form method="post" action="{{.Action}}">
{{range .Fields}}{{if eq .Type "hidden"}}<input type="hidden" name="{{.Name}}" value="{{.Value}}">
{{else}}<label>{{$.T .Label}} <input name="{{.Name}}" type="{{.Type}}" value="{{.Value}}" autocomplete="{{.Complete}}"
  autocapitalize="none" spellcheck="false" required{{if .Fixed}} readonly{{end}}
  {{- if and $focus (not .Value)}} autofocus{{$focus = false}}{{end}}></label>
{{end}}{{end}}<button>{{$.T .Button}}</button>
</form>
{{end}}{{with .Hint}}<p>{{.}}</p>
{{end}}{{with .Link}}<p><a href="{{.}}">{{$.T $.Label}}</a></p>
{{end}}</main>
</html>
`))

// german has the texts of the pages. What it lacks stays English.
var german = map[string]string{
	"Sign in":                             "Anmelden",
	"Sign in again":                       "Neu anmelden",
	"Name":                                "Name",
	"Password":                            "Passwort",
	"Open the console":                    "Konsole öffnen",
	"You are signed in as %s.":            "Sie sind als %s angemeldet.",
	"Choose your password":                "Wählen Sie Ihr Passwort",
	"New password, 12 characters or more": "Neues Passwort, mindestens 12 Zeichen",
	"The same again":                      "Noch einmal dasselbe",
	"Save and sign in":                    "Speichern und anmelden",
	signin.NotRight:                       "Name oder Passwort ist falsch.",
	signin.LinkUsed: "Dieser Link wurde schon benutzt oder ist abgelaufen. " +
		"Bitten Sie um einen neuen: motorpool operator password NAME.",
	signin.NotTheSame: "Die beiden Passwörter sind verschieden.",
	signin.ManyTries:  "Zu viele Versuche. Versuchen Sie es später noch einmal.",
	signin.NoOperators: "Es gibt noch kein Konto. Legen Sie das erste auf dem Server an: " +
		`motorpool operator add NAME --role admin --scope "all_agencies halt agency_keys"`,
	operators.TooShort:  "Das Passwort ist zu kurz: mindestens 12 Zeichen.",
	operators.TooLong:   "Das Passwort ist zu lang.",
	operators.HasName:   "Das Passwort darf Ihren Namen nicht enthalten.",
	signin.ServerNeeded: "Ein Server, der dafür nötig ist, ist nicht erreichbar. Versuchen Sie es noch einmal.",
	signin.OtherSite:    "Eine Seite eines anderen Anbieters hat diese Anfrage gesendet; sie wurde nicht ausgeführt.",
}

var languages = language.NewMatcher([]language.Tag{language.English, language.German})

// translated is a page in the language of its reader.
type translated struct {
	Page
	Language string
}

// T returns a text in the page's language.
func (t translated) T(text string, words ...string) string {
	if own, ok := german[text]; ok && t.Language == "de" {
		text = own
	}
	if len(words) == 1 && words[0] != "" {
		return fmt.Sprintf(text, words[0])
	}
	return text
}

// Render returns the page for a reader who accepts languages, and its headers. Its error is one of
// the template: there is none today.
func (p Page) Render(accepted string) (headers map[string]string, body []byte, err error) {
	match, _, _ := languages.Match(parseLanguages(accepted)...)
	base, _ := match.Base()
	var text bytes.Buffer
	if err := layout.Execute(&text, translated{p, base.String()}); err != nil {
		return nil, nil, err
	}
	referrer := "no-referrer"
	if p.Action != "" {
		referrer = "same-origin" // else the form is sent with the origin null
	}
	return map[string]string{
		"Content-Security-Policy": policy, "Referrer-Policy": referrer, "Cache-Control": "no-store", "Vary": "Accept-Language",
	}, text.Bytes(), nil
}

// parseLanguages returns the languages that a reader accepts; none where the header is not valid.
func parseLanguages(header string) []language.Tag {
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return nil
	}
	return tags
}
