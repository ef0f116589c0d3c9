package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/internal/app"
	"motorpool/internal/keyfile"
	"motorpool/rental"
	"motorpool/telematics"
)

// sign does what an agency's app does with each request. Its variables are those of the app, not of
// an operator.
type sign struct {
	KeyID   string     `env:"AGENCY_KEY_ID" placeholder:"ID" help:"Id of the agency's key."`
	Secret  app.Secret `env:"AGENCY_SECRET" placeholder:"HEX" help:"Its secret: 64 hexadecimal digits."`
	Token   app.Secret `env:"CLIENT_TOKEN" placeholder:"TOKEN" help:"Access token that the request bears."`
	Body    string     `env:"-" placeholder:"FILE" xor:"body" help:"${sign_body}."`
	Data    string     `env:"-" placeholder:"TEXT" xor:"body" help:"The request's body itself, as for curl -d."`
	Time    int64      `env:"-" placeholder:"SECONDS" help:"Unix time to sign with, to compare with another program (default now)."`
	Nonce   string     `env:"-" placeholder:"TEXT" help:"${sign_nonce}."`
	Explain bool       `env:"-" help:"Print the eight lines that are signed, too, to standard error."`
	Method  string     `arg:"" help:"Method of the request."`
	Path    string     `arg:"" help:"Path with query, exactly as it is sent, or the whole URL."`
}

// Run prints the header, ready for curl -H.
func (s sign) Run(ctx context.Context) error {
	if err := s.complete(); err != nil {
		return err
	}
	if s.Time < 0 {
		return badUsage("--time: want a Unix time in seconds")
	}
	secret, err := hex.DecodeString(string(s.Secret))
	if err != nil || len(secret) != rental.SecretSize {
		return badUsage("--secret: want %d hexadecimal digits, as 'motorpool agency key add' prints them", 2*rental.SecretSize)
	}
	request, err := s.request(ctx)
	if err != nil {
		return err
	}
	at, nonce := time.Now(), s.Nonce
	if s.Time != 0 {
		at = time.Unix(s.Time, 0)
	}
	if nonce == "" {
		random := make([]byte, 16)
		_, _ = rand.Read(random) // never fails
		nonce = base64.RawURLEncoding.EncodeToString(random)
	}
	header := request.Sign(s.KeyID, secret, at, nonce).String()
	if _, err := rental.ParseSignature(header); err != nil { // by the same rules as the service
		return badUsage("the service would refuse it: %w (see --key-id, --time and --nonce)", err)
	}
	if s.Explain {
		hint("%s", request.Canonical(at, nonce))
	}
	fmt.Fprintln(stdout, rental.SignatureHeader+": "+header)
	return nil
}

// complete returns an error that names the missing values, by their variables: usually the shell
// has not read the file of variables.
func (s sign) complete() error {
	var missing []string
	for _, need := range []struct{ value, name string }{
		{s.KeyID, "AGENCY_KEY_ID (--key-id)"}, {string(s.Secret), "AGENCY_SECRET (--secret)"}, {string(s.Token), "CLIENT_TOKEN (--token)"},
	} {
		if need.value == "" {
			missing = append(missing, need.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return badUsage("set %s; a development world has them in its file env: set -a; source .dev/env; set +a", strings.Join(missing, ", "))
}

func (s sign) request(ctx context.Context) (rental.SignedRequest, error) {
	target, _, _ := strings.Cut(s.Path, "#") // a fragment is never sent
	if !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://") {
		return rental.SignedRequest{}, badUsage("%q is neither a path from / on nor an http:// or https:// URL", s.Path)
	}
	if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return rental.SignedRequest{}, badUsage("%q must be percent-encoded, exactly as it is sent", s.Path)
	}
	body, err := s.body(ctx)
	if err != nil {
		return rental.SignedRequest{}, err
	}
	if err := checkToken(string(s.Token)); err != nil {
		return rental.SignedRequest{}, err
	}
	path, query := rental.SplitTarget(target)
	return rental.SignedRequest{Method: strings.ToUpper(s.Method), Path: path, Query: query, Body: body, Token: string(s.Token)}, nil
}

func (s sign) body(ctx context.Context) ([]byte, error) {
	if s.Body == "" {
		return []byte(s.Data), nil
	}
	return readFile(ctx, "--body", s.Body)
}

// stdin returns standard input, which ends with the context, too: a signal interrupts no read.
func stdin(ctx context.Context) io.Reader {
	input, to := io.Pipe()
	from := os.Stdin
	go func() {
		_, err := io.Copy(to, from)
		_ = to.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { _ = to.CloseWithError(ctx.Err()) })
	return input
}

// readFile reads the file that a flag names; -: standard input.
func readFile(ctx context.Context, flag, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin(ctx))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, badUsage("%s: %w", flag, err)
	}
	return text, nil
}

// token prints an access token for trials.
type token struct {
	Key      string        `required:"" type:"existingfile" placeholder:"FILE" help:"${token_key}."`
	Role     string        `enum:"admin,operator,viewer,client" default:"admin" help:"${token_role}."`
	Agency   *int64        `env:"-" placeholder:"N" help:"Bind the token to an agency; an admin needs it, or --scope all_agencies."`
	Scope    string        `env:"-" placeholder:"SCOPES" help:"${token_scope}."`
	Sub      string        `default:"dev" placeholder:"NAME" help:"Subject of the token."`
	TTL      time.Duration `default:"24h" placeholder:"DURATION" help:"Lifetime of the token."`
	Issuer   string        `default:"motorpool" help:"Issuer."`
	Audience string        `default:"motorpool" help:"Audience."`
}

func (t token) Run() error {
	private, err := keyfile.Read(t.Key)
	if err != nil {
		return badUsage("%w (want what 'motorpool keys new' prints)", err)
	}
	actor := telematics.Actor{Subject: t.Sub, Role: telematics.Role(t.Role)}
	level, below := map[string]auth.Level{"viewer": auth.Viewer, "operator": auth.Operator}[t.Role]
	if below {
		actor.Role = telematics.Admin
	}
	if t.Agency != nil {
		if *t.Agency < 1 {
			return badUsage("--agency: want 1 or more; for all agencies leave it out, and give --scope all_agencies")
		}
		actor.Agency = telematics.AgencyID(*t.Agency)
	}
	if actor.Role == telematics.Client && actor.Agency == 0 {
		return badUsage("--agency: a client is of one agency")
	}
	if actor.Role == telematics.Admin && actor.Agency == 0 && !slices.Contains(strings.Fields(t.Scope), auth.ScopeAllAgencies) {
		return badUsage("--agency: an admin is of one agency; for one of all agencies: --scope %s", auth.ScopeAllAgencies)
	}
	minted, err := app.Grant{
		Issuer: t.Issuer, Audience: t.Audience, Lifetime: t.TTL, Actor: actor, Level: level, Scope: t.Scope,
	}.Mint(private.Active().Key)
	return show(minted, err)
}
