package admin

import (
	"strings"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

var PubsubCommands = []engine.Command{
	{
		Name: "psubscribe", Syntax: "pattern [pattern ...]", Since: "2.0.0",
		Summary: "Listen for messages published to channels matching the given patterns",
		Differs: "The pattern is bounded as that of `KEYS`",
		Flags:   engine.PubSub | engine.NoScript | engine.Loading | engine.Stale | engine.AllowSubscribed | engine.OnNode,
		Touches: engine.TouchesPatterns, Parse: func(in *engine.Input) (engine.Run, error) { return parseSubscribe(in, engine.SubPattern, "psubscribe") },
	},
	{
		Name: "publish", Syntax: "channel message", Since: "2.0.0", Summary: "Post a message to a channel",
		Differs: "The message leaves when all earlier commands of the sender are committed, in their order",
		Flags:   engine.PubSub | engine.Loading | engine.Stale | engine.Fast | engine.Publishes | engine.OnNode,
		Touches: engine.TouchesChannels, Parse: func(in *engine.Input) (engine.Run, error) { return parsePublish(in, engine.SubChannel) },
	},
	pubsubCommand,
	{
		Name: "punsubscribe", Syntax: "[pattern [pattern ...]]", Since: "2.0.0",
		Summary: "Stop listening for messages posted to channels matching the given patterns",
		Flags:   engine.PubSub | engine.NoScript | engine.Loading | engine.Stale | engine.AllowSubscribed | engine.OnNode,
		Parse:   engine.NoParse(runUnsubscribe(engine.SubPattern, "punsubscribe")),
	},
	{
		Name: "spublish", Syntax: "shardchannel message", Since: "7.0.0", Summary: "Post a message to a shard channel",
		Touches: engine.TouchesChannels, Flags: engine.PubSub | engine.Loading | engine.Stale | engine.Fast | engine.Publishes | engine.OnNode, Keys: engine.OneKey, Access: engine.NotKeys,
		Parse: func(in *engine.Input) (engine.Run, error) { return parsePublish(in, engine.SubShard) },
	},
	{
		Name: "ssubscribe", Syntax: "shardchannel [shardchannel ...]", Since: "7.0.0",
		Summary: "Listen for messages published to the given shard channels",
		Touches: engine.TouchesChannels, Flags: engine.PubSub | engine.NoScript | engine.Loading | engine.Stale | engine.AllowSubscribed | engine.OnNode, Keys: engine.AllKeys, Access: engine.NotKeys,
		Parse: func(in *engine.Input) (engine.Run, error) { return parseSubscribe(in, engine.SubShard, "ssubscribe") },
	},
	{
		Name: "subscribe", Syntax: "channel [channel ...]", Since: "2.0.0", Summary: "Listen for messages published to the given channels",
		Touches: engine.TouchesChannels, Flags: engine.PubSub | engine.NoScript | engine.Loading | engine.Stale | engine.AllowSubscribed | engine.OnNode,
		Parse: func(in *engine.Input) (engine.Run, error) { return parseSubscribe(in, engine.SubChannel, "subscribe") },
	},
	{
		Name: "sunsubscribe", Syntax: "[shardchannel [shardchannel ...]]", Since: "7.0.0",
		Summary: "Stop listening for messages posted to the given shard channels",
		Flags:   engine.PubSub | engine.NoScript | engine.Loading | engine.Stale | engine.AllowSubscribed | engine.OnNode, Keys: engine.AllKeys, Access: engine.NotKeys,
		Parse: engine.NoParse(runUnsubscribe(engine.SubShard, "sunsubscribe")),
	},
	{
		Name: "unsubscribe", Syntax: "[channel [channel ...]]", Since: "2.0.0",
		Summary: "Stop listening for messages posted to the given channels",
		Flags:   engine.PubSub | engine.NoScript | engine.Loading | engine.Stale | engine.AllowSubscribed | engine.OnNode,
		Parse:   engine.NoParse(runUnsubscribe(engine.SubChannel, "unsubscribe")),
	},
}

// pubsubCommand lists subscriptions.
var pubsubCommand = engine.Command{
	Name: "pubsub", Since: "2.8.0", Summary: "A container for Pub/Sub commands",
	Sub: []engine.Command{
		{
			Name: "channels", Syntax: "[pattern]", Summary: "List active channels",
			Differs: "The pattern is bounded as that of `KEYS`",
			Flags:   engine.PubSub | engine.Loading | engine.Stale | engine.OnNode, Touches: engine.TouchesVisible, Parse: func(in *engine.Input) (engine.Run, error) { return parseActiveNames(in, engine.SubChannel) },
		},
		engine.HelpRow("pubsub", "6.2.0"),
		{
			Name: "numpat", Summary: "Get the count of unique patterns pattern subscriptions",
			Flags: engine.PubSub | engine.Loading | engine.Stale | engine.OnNode,
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
				n := 0
				x.Engine.Broker.EachActive(engine.SubPattern, func(string) bool { n++; return true })
				return engine.Count(n)
			}),
		},
		{
			Name: "numsub", Touches: engine.TouchesVisible, Syntax: "[channel [channel ...]]", Summary: "Get the count of subscribers for channels",
			Flags: engine.PubSub | engine.Loading | engine.Stale | engine.OnNode, Parse: engine.NoParse(runNumSub(engine.SubChannel)),
		},
		{
			Name: "shardchannels", Syntax: "[pattern]", Since: "7.0.0", Summary: "List active shard channels",
			Differs: "As `PUBSUB CHANNELS`",
			Flags:   engine.PubSub | engine.Loading | engine.Stale | engine.OnNode, Parse: func(in *engine.Input) (engine.Run, error) { return parseActiveNames(in, engine.SubShard) },
		},
		{
			Name: "shardnumsub", Syntax: "[shardchannel [shardchannel ...]]", Since: "7.0.0",
			Summary: "Get the count of subscribers for shard channels",
			Flags:   engine.PubSub | engine.Loading | engine.Stale | engine.OnNode, Parse: engine.NoParse(runNumSub(engine.SubShard)),
		},
	},
}

// MaxChannel is the largest size in bytes of a channel's name. Patterns are matched against it.
const MaxChannel = 1 << 16

// checkSubscription returns an error if the name of a channel, or a pattern, is too long.
func checkSubscription(kind engine.SubscriptionKind, name string) error {
	if kind == engine.SubPattern {
		if err := engine.CheckPattern(name); err != nil {
			return err
		}
	}
	if len(name) > MaxChannel {
		return engine.Errorf(engine.ErrTooLongName, "channel", len(name), MaxChannel)
	}
	return nil
}

// parseSubscribe parses SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE. Each channel gets a reply with the number
// of subscriptions after it.
func parseSubscribe(in *engine.Input, kind engine.SubscriptionKind, word string) (engine.Run, error) {
	names := in.Args[1:]
	for _, name := range names {
		if err := checkSubscription(kind, name); err != nil {
			return nil, err
		}
	}
	return func(x *engine.Context) engine.Reply {
		if kind == engine.SubShard && x.Session.Multi.Open { // the other kinds are legal
			return engine.Fail(errShardInMulti)
		}
		kept := make([]string, len(names))
		for i, name := range names {
			kept[i] = strings.Clone(name)
		}
		replies := make([]engine.Reply, 0, len(names))
		err := x.Engine.Broker.Subscribe(x.Session, kind, kept, func(name string) {
			replies = append(replies, confirmation(x.Session, kind, word, engine.Bulk(name)))
		})
		if err != nil {
			return engine.Fail(err)
		}
		if ks := x.Engine.Keyspace(); ks != nil {
			ks.ListenersChanged()
		}
		return x.AnnounceSubscriptions(Several(replies))
	}, nil
}

// runUnsubscribe returns the Run of UNSUBSCRIBE, PUNSUBSCRIBE and SUNSUBSCRIBE. Without arguments they end
// all subscriptions of their kind.
func runUnsubscribe(kind engine.SubscriptionKind, word string) engine.Run {
	return func(x *engine.Context) engine.Reply {
		list := x.Input.Args[1:]
		if len(list) == 0 {
			list = x.Engine.Broker.Names(x.Session, kind)
		}
		if len(list) == 0 {
			return Several([]engine.Reply{confirmation(x.Session, kind, word, engine.Null)})
		}
		replies := make([]engine.Reply, 0, len(list))
		x.Engine.Broker.Unsubscribe(x.Session, kind, list, func(name string) {
			replies = append(replies, confirmation(x.Session, kind, word, engine.Bulk(name)))
		})
		x.Engine.Broker.Announce()
		x.Close = x.Close || x.Session.Deposed.Load() && !x.Session.InSubscribedMode() // see disconnectLed
		return Several(replies)
	}
}

// confirmation is the reply to a subscription or its end, with the session's number of subscriptions.
// Channels and patterns count together.
func confirmation(s *engine.Session, kind engine.SubscriptionKind, word string, name engine.Reply) engine.Reply {
	n := s.Subscribed[kind]
	if kind != engine.SubShard {
		n = s.Subscribed[engine.SubChannel] + s.Subscribed[engine.SubPattern]
	}
	return engine.Push(engine.Bulk(word), name, engine.Count(n))
}

func Several(replies []engine.Reply) engine.Reply {
	return engine.Reply{Kind: engine.KindSeveral, Elems: replies}
}

// parsePublish parses PUBLISH and SPUBLISH. Within a transaction the message shares its fate. Elsewhere
// the message waits for the client's earlier commands, as in Redis, but leaves even if their commit
// fails.
func parsePublish(in *engine.Input, kind engine.SubscriptionKind) (engine.Run, error) {
	channel, text := in.Args[1], in.Args[2]
	if err := checkSubscription(kind, channel); err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		n, ok := x.Input.Receivers, x.Input.Matched
		if !ok {
			if n, ok = x.CountReceivers(kind, channel); !ok {
				return engine.Fail(engine.ErrAbandoned)
			}
		}
		if n > 0 || x.Engine.Broker.Remote != nil {
			x.Publish(engine.Event{
				Kind: kind, Channel: strings.Clone(channel), Text: strings.Clone(text), Bound: x.Session.Multi.Open,
			})
		}
		return engine.Count(n)
	}, nil
}

func parseActiveNames(in *engine.Input, kind engine.SubscriptionKind) (engine.Run, error) {
	all, pattern := false, ""
	switch len(in.Args) {
	case 2:
		all = true // unlike the pattern *, includes the channel with the empty name
	case 3:
		pattern = in.Args[2]
	default:
		return nil, engine.Errorf(engine.ErrSubcommandCall, engine.Shown(in.Args[1]), "PUBSUB")
	}
	if err := engine.CheckPattern(pattern); err != nil {
		return nil, err
	}
	compiled := redisfmt.Compile(pattern)
	return func(x *engine.Context) engine.Reply {
		names, seesAll := []engine.Reply{}, x.SeesAll()
		watch := x.WatchClient()
		x.Engine.Broker.EachActive(kind, func(name string) bool {
			if (all || compiled.Match(name)) && (seesAll || kind == engine.SubShard || x.SeesChannel(name)) {
				names = append(names, engine.Bulk(name))
			}
			return !watch.Abandoned(len(name))
		})
		if x.Abandoned {
			return engine.Fail(engine.ErrAbandoned)
		}
		return engine.Array(names...)
	}, nil
}

func runNumSub(kind engine.SubscriptionKind) engine.Run {
	return func(x *engine.Context) engine.Reply {
		channels := x.Input.Args[2:]
		pairs := make([]engine.Reply, 0, 2*len(channels))
		for _, channel := range channels {
			n := 0 // who subscribes to events of a container is seen by who sees the container
			if kind == engine.SubShard || x.SeesAll() || x.SeesChannel(channel) {
				n = x.Engine.Broker.CountSubscribers(kind, channel)
			}
			pairs = append(pairs, engine.Bulk(channel), engine.Count(n))
		}
		return engine.Array(pairs...)
	}
}
