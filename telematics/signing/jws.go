package signing

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

	"motorpool/telematics"
)

const (
	commandType   = "motorpool-command+jwt"
	commandIssuer = "motorpool"
)

type wireClaims struct {
	Issuer   string            `json:"iss"`
	Audience string            `json:"aud"`
	ID       string            `json:"jti"`
	IssuedAt int64             `json:"iat"`
	Expires  int64             `json:"exp"`
	Action   telematics.Action `json:"cmd"`
	Params   *wireParams       `json:"params,omitempty"`
	Lane     telematics.Lane   `json:"lane"`
	Seq      int64             `json:"seq"`
	Trace    string            `json:"tp,omitempty"`
}

type wireParams struct {
	Signal     telematics.Signal `json:"signal"`
	DurationMS int64             `json:"duration_ms"`
}

// Sign returns the command as a JWS in compact form, EdDSA [CMD-1]. A retransmission
// is the same message, so each command is signed once.
func (k Key) Sign(c telematics.Claims) ([]byte, error) {
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
	header, err := json.Marshal(wireHeader{Algorithm: jwa.EdDSA().String(), KeyID: k.ID, Type: commandType})
	if err != nil {
		return nil, fmt.Errorf("sign command: %w", err)
	}
	payload, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("sign command: %w", err)
	}
	message := jwsbb.SignBuffer(make([]byte, 0, signedSize), header, payload, base64.RawURLEncoding, true)
	signature, err := jwsbb.SignEdDSA(k.Private, message)
	if err != nil {
		return nil, fmt.Errorf("sign command: %w", err)
	}
	return jwsbb.AppendSignature(message, signature, base64.RawURLEncoding), nil
}

// signedSize is the approximate length of a signed command, in bytes.
const signedSize = 640

// wireHeader is the JSON of the protected header. Members are in alphabetical order, as JWS
// libraries write them.
type wireHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// ErrBadSignature means that a message is not a command signed by a known key.
var ErrBadSignature = errors.New("not a command signed by a known key")

// Verify returns the claims of a message that a key of the ring signed, or
// ErrBadSignature. The unit must check whether they hold for it, now [CMD-4].
func (r Keyring) Verify(message []byte) (telematics.Claims, error) {
	if len(message) > telematics.MaxMessage {
		return telematics.Claims{}, fmt.Errorf("%w: larger than %d bytes", ErrBadSignature, telematics.MaxMessage)
	}
	parsed, err := jws.Parse(message, jws.WithCompact())
	if err != nil {
		return telematics.Claims{}, fmt.Errorf("%w: %w", ErrBadSignature, err)
	}
	header := parsed.Signatures()[0].ProtectedHeaders()
	id, _ := header.KeyID()
	typ, _ := header.Type()
	alg, _ := header.Algorithm()
	_, critical := header.Critical() // extensions that a reader must understand: we support none
	public, known := r[id]
	if !known || typ != commandType || alg != jwa.EdDSA() || critical {
		return telematics.Claims{}, fmt.Errorf("%w: kid %.64q, typ %.64q, alg %.64q, crit %t", ErrBadSignature, id, typ, alg, critical)
	}
	payload, err := jws.Verify(message, jws.WithKey(jwa.EdDSA(), public))
	if err != nil {
		return telematics.Claims{}, fmt.Errorf("%w: %w", ErrBadSignature, err)
	}
	return decodeClaims(payload)
}

func decodeClaims(payload []byte) (telematics.Claims, error) {
	var w wireClaims
	if err := json.Unmarshal(payload, &w); err != nil {
		return telematics.Claims{}, fmt.Errorf("%w: decode claims: %w", ErrBadSignature, err)
	}
	id, err := uuid.Parse(w.ID)
	if err != nil || w.Issuer != commandIssuer {
		return telematics.Claims{}, fmt.Errorf("%w: iss %.64q, jti %.64q", ErrBadSignature, w.Issuer, w.ID)
	}
	c := telematics.Claims{
		Command: id, Unit: telematics.Unit(w.Audience), Action: w.Action, Lane: w.Lane, Seq: w.Seq, Trace: w.Trace,
		IssuedAt: time.Unix(w.IssuedAt, 0).UTC(), Expires: time.Unix(w.Expires, 0).UTC(),
	}
	if w.Params != nil {
		c.Attention = &telematics.Attention{Signal: w.Params.Signal, Duration: time.Duration(w.Params.DurationMS) * time.Millisecond}
	}
	return c, nil
}
