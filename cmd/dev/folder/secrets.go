package folder

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/internal/app"
	"motorpool/internal/atomicfile"
	"motorpool/internal/keyfile"
	"motorpool/mosquitto"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// Secrets are the keys and passwords of an installation. They stay in its folder between runs.
type Secrets struct {
	Signing signing.Keychain // of commands, as it is at start
	Tokens  signing.Key      // of access tokens

	UnitSecret      string // from which UnitPassword derives the units' passwords
	ServicePassword string // of the service at the MQTT broker, and of the gateway
	PaymentsKey     string // of the service at the payment processor's sandbox
	WebhookSecret   string // signs the notices of the sandbox
	AgencySecrets   string // seals the secrets of agency keys
	ConsolePassword string // of the people who sign in to the console
}

// The files of keys in the folder.
const (
	SigningFile   = "signing.jwks"
	TokensFile    = "tokens.jwks"
	TokenKeysFile = "token-keys.jwks" // the public half, for the service
	KeyringFile   = "keyring.jwks"    // the public half of SigningFile, for units
)

// The issuer and the audience of access tokens, which the service requires.
const (
	TokenIssuer   = "motorpool-dev"
	TokenAudience = "motorpool"
	tokenLifetime = 30 * 24 * time.Hour // unless Folder.TokenLifetime says otherwise
)

func openSecrets(dir string) (Secrets, error) {
	var s Secrets
	var tokens signing.Keychain
	var errs [8]error
	s.Signing, errs[0] = openKeys(filepath.Join(dir, SigningFile))
	tokens, errs[1] = openKeys(filepath.Join(dir, TokensFile))
	for i, secret := range []struct {
		to   *string
		file string
	}{
		{&s.UnitSecret, "units.secret"},
		{&s.ServicePassword, "service.secret"},
		{&s.PaymentsKey, "payments.secret"},
		{&s.WebhookSecret, "webhooks.secret"},
		{&s.AgencySecrets, "agencies.secret"},
		{&s.ConsolePassword, "console.secret"},
	} {
		*secret.to, errs[2+i] = openSecret(filepath.Join(dir, secret.file))
	}
	if err := errors.Join(errs[:]...); err != nil {
		return s, fmt.Errorf("open secrets: %w", err)
	}
	sealing := sha256.Sum256([]byte(s.AgencySecrets))
	s.PaymentsKey, s.WebhookSecret, s.AgencySecrets = "sk_test_"+s.PaymentsKey, "whsec_"+s.WebhookSecret, hex.EncodeToString(sealing[:])
	s.Tokens = tokens.Active().Key
	return s, errors.Join(
		WriteKeyring(filepath.Join(dir, KeyringFile), s.Signing),
		WriteKeyring(filepath.Join(dir, TokenKeysFile), tokens))
}

func openKeys(file string) (signing.Keychain, error) {
	chain, err := keyfile.Read(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return chain, err
	}
	key, err := signing.NewKey()
	if err != nil {
		return nil, err
	}
	if chain, err = (signing.Keychain{}).Add(key, time.Now()); err != nil {
		return nil, err
	}
	jwks, err := chain.Encode()
	if err != nil {
		return nil, err
	}
	return chain, atomicfile.Write(file, jwks)
}

func openSecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		text = []byte(rand.Text())
		err = atomicfile.Write(file, text)
	}
	return string(text), err
}

// UnitPassword is the password of a unit at the MQTT broker.
func (s Secrets) UnitPassword(unit telematics.Unit) string {
	return mosquitto.UnitPassword(s.UnitSecret, string(unit))
}

// TokenAt returns an access token of an administrator with a level; 0 means the highest.
func (f *Folder) TokenAt(level auth.Level, actor telematics.Actor, scopes ...string) (string, error) {
	return app.Grant{
		Issuer: TokenIssuer, Audience: TokenAudience, Actor: actor, Level: level, Scope: strings.Join(scopes, " "),
		Lifetime: cmp.Or(f.TokenLifetime, tokenLifetime),
	}.Mint(f.Tokens)
}

// WriteKeyring writes the public halves of keys.
func WriteKeyring(file string, chain signing.Keychain) error {
	jwks, err := signing.EncodeKeyring(chain.Keyring())
	if err != nil {
		return err
	}
	return atomicfile.Write(file, jwks)
}

// ReadEnv returns the variables of a file that make dev has written; nil while there is none.
func ReadEnv(file string) map[string]string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env
}
