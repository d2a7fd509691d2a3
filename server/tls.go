package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"mayfly/commands/engine"
	"mayfly/server/config"
)

// clientAuth maps the values of tls-auth-clients.
var clientAuth = map[string]tls.ClientAuthType{
	"yes":      tls.RequireAndVerifyClientCert,
	"optional": tls.VerifyClientCertIfGiven,
	"no":       tls.NoClientCert,
}

// followTLS makes CONFIG SET of the options of TLS take effect on new connections, if there is a port for
// them. Setting the name of a certificate's file again renews the certificate.
func (s *Server) followTLS() {
	renew := func(changed *config.Settings) error {
		if s.tls.Load() == nil {
			return nil
		}
		renewed, err := tlsConfig(changed)
		if err != nil {
			return engine.Error("Unable to update TLS configuration: " + err.Error()) // as in Redis
		}
		s.tls.Store(renewed)
		return nil
	}
	for _, option := range []string{"tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-auth-clients"} {
		s.OnChange(option, renew)
	}
}

// tlsConfig makes the configuration of the TLS port, for TLS 1.2 and newer. Errors are one clear line.
func tlsConfig(s *config.Settings) (*tls.Config, error) {
	if s.TLSCertFile == "" || s.TLSKeyFile == "" {
		return nil, errors.New("tls-port needs tls-cert-file and tls-key-file")
	}
	cert, err := tls.LoadX509KeyPair(s.TLSCertFile, s.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot use tls-cert-file %s with tls-key-file %s: %w", s.TLSCertFile, s.TLSKeyFile, err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   clientAuth[s.TLSAuthClients],
	}
	if config.ClientAuth == tls.NoClientCert {
		return config, nil
	}
	if s.TLSCACertFile == "" {
		return nil, errors.New("tls-ca-cert-file is needed to check the certificates of clients (or tls-auth-clients no)")
	}
	pem, err := os.ReadFile(s.TLSCACertFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read tls-ca-cert-file: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls-ca-cert-file %s holds no certificate in PEM", s.TLSCACertFile)
	}
	return config, nil
}
