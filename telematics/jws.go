package telematics

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jws/jwsbb"
)

const (
	commandType   = "motorpool-command+jwt"
	commandIssuer = "motorpool"
)

// Claims is what a signed command says [CMD-2].
type Claims struct {
	Command   CommandID
	Unit      Unit
	Action    Action
	Attention *Attention
	Lane      Lane
	Seq       int64
	IssuedAt  time.Time // whole seconds
	Expires   time.Time // whole seconds
	Trace     string    // W3C traceparent; empty: none
}

// Claims returns what is signed for the command.
func (c *Command) Claims() Claims {
	return Claims{
		Command: c.ID, Unit: c.Unit, Action: c.Action, Attention: c.Attention, Lane: c.Lane, Seq: c.Seq,
		IssuedAt: c.Requested.Truncate(expiryUnit), Expires: c.Expires(),
	}
}

type wireClaims struct {
	Issuer   string      `json:"iss"`
	Audience string      `json:"aud"`
	ID       string      `json:"jti"`
	IssuedAt int64       `json:"iat"`
	Expires  int64       `json:"exp"`
	Action   Action      `json:"cmd"`
	Params   *wireParams `json:"params,omitempty"`
	Lane     Lane        `json:"lane"`
	Seq      int64       `json:"seq"`
	Trace    string      `json:"tp,omitempty"`
}

type wireParams struct {
	Signal     Signal `json:"signal"`
	DurationMS int64  `json:"duration_ms"`
}

// Sign returns the command as a JWS in compact form, EdDSA [CMD-1]. The same
// message is sent again until the vehicle answers, so it is signed once.
func (k SigningKey) Sign(c Claims) ([]byte, error) {
	if len(k.Private) != ed25519.PrivateKeySize {
		return nil, errors.New("sign command: there is no key to sign with")
	}
	w := wireClaims{
		Issuer: commandIssuer, Audience: string(c.Unit), ID: c.Command.String(),
		IssuedAt: c.IssuedAt.Unix(), Expires: c.Expires.Unix(),
		Action: c.Action, Lane: c.Lane, Seq: c.Seq, Trace: c.Trace,
	}
	if c.Attention != nil {
		w.Params = &wireParams{Signal: c.Attention.Signal, DurationMS: c.Attention.Duration.Milliseconds()}
	}
	header := encode(wireHeader{Algorithm: jwa.EdDSA().String(), KeyID: k.ID, Type: commandType})
	message := jwsbb.SignBuffer(make([]byte, 0, signedSize), header, encode(w), base64.RawURLEncoding, true)
	signature, err := jwsbb.SignEdDSA(k.Private, message)
	if err != nil {
		return nil, fmt.Errorf("sign command: %w", err)
	}
	return jwsbb.AppendSignature(message, signature, base64.RawURLEncoding), nil
}

// signedSize is about how long a signed command is.
const signedSize = 640

// wireHeader is the JSON of the protected header. Members are in the order of their names, which any JWS library would give them.
type wireHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// ErrBadSignature means that a message is not a command signed by a known key.
var ErrBadSignature = errors.New("not a command signed by a known key")

// Verify returns the claims of a message that a key of the ring signed. Whether
// they hold for this unit, now, is for the unit to check [CMD-4].
func (r Keyring) Verify(message []byte) (Claims, error) {
	if len(message) > MaxMessage {
		return Claims{}, fmt.Errorf("%w: %w", ErrBadSignature, errTooLarge)
	}
	parsed, err := jws.Parse(message, jws.WithCompact())
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrBadSignature, err)
	}
	header := parsed.Signatures()[0].ProtectedHeaders()
	id, _ := header.KeyID()
	typ, _ := header.Type()
	alg, _ := header.Algorithm()
	_, critical := header.Critical() // names what a reader must understand: we know of nothing
	public, known := r[id]
	if !known || typ != commandType || alg != jwa.EdDSA() || critical {
		return Claims{}, fmt.Errorf("%w: kid %.64q, typ %.64q, alg %.64q, crit %t", ErrBadSignature, id, typ, alg, critical)
	}
	payload, err := jws.Verify(message, jws.WithKey(jwa.EdDSA(), public))
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrBadSignature, err)
	}
	return decodeClaims(payload)
}

func decodeClaims(payload []byte) (Claims, error) {
	var w wireClaims
	if err := json.Unmarshal(payload, &w); err != nil {
		return Claims{}, fmt.Errorf("%w: decode claims: %w", ErrBadSignature, err)
	}
	id, err := uuid.Parse(w.ID)
	if err != nil || w.Issuer != commandIssuer {
		return Claims{}, fmt.Errorf("%w: iss %.64q, jti %.64q", ErrBadSignature, w.Issuer, w.ID)
	}
	c := Claims{
		Command: id, Unit: Unit(w.Audience), Action: w.Action, Lane: w.Lane, Seq: w.Seq, Trace: w.Trace,
		IssuedAt: time.Unix(w.IssuedAt, 0).UTC(), Expires: time.Unix(w.Expires, 0).UTC(),
	}
	if w.Params != nil {
		c.Attention = &Attention{Signal: w.Params.Signal, Duration: time.Duration(w.Params.DurationMS) * time.Millisecond}
	}
	return c, nil
}
