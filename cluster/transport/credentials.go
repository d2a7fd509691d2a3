package transport

// CredentialOptions names the files of the options cluster-cert-file, cluster-key-file, cluster-ca-cert-file and
// cluster-secret-file.
type CredentialOptions struct {
	CertFile, KeyFile, CACertFile string
	SecretFile                    string
	Dir                           string   // for files that are made of the secret, DIR/cluster/tls
	Addrs                         []string // of all nodes; without credentials they must be on loopback
}

// Credentials is how nodes know each other.
type Credentials struct{}

// Load checks and reads the files. It returns nil without files, if all addresses are on loopback.
func Load(o CredentialOptions) (*Credentials, error) { return nil, nil }
