import type { Arguments } from "../arguments.ts";
import type { Core } from "../core.ts";
import { messageToWire, repliesTo, toTombstone } from "../message-wire.ts";
import { type Call, findChannel, type MethodDeps, type Methods, needScope } from "../method.ts";
import { SlackRefusal } from "../refusal.ts";
import {
  type Channel,
  type ChannelKind,
  channelType,
  type Json,
  type Message,
  type User,
  type Workspace,
} from "../world.ts";

const COMMERCIAL_PAGE = 15;
const DEFAULT_PAGE = 100;
const KINDS: Readonly<Record<string, ChannelKind>> = {
  public_channel: "public",
  private_channel: "private",
  im: "im",
  mpim: "mpim",
};

/** The methods with which the app reads and joins channels. */
export function createConversationMethods({ core }: MethodDeps): Methods {
  /** Undefined in `found` means the tombstone. */
  function page(args: Arguments, found: ReadonlyArray<Message | undefined>, tombstone?: Json): Json {
    const most = core.limits.history === "commercial" ? COMMERCIAL_PAGE : core.limits.maxPage;
    const size = Math.max(1, Math.min(most, args.count("limit") ?? Math.min(most, DEFAULT_PAGE)));
    const from = Number(Buffer.from(args.text("cursor") ?? "", "base64url").toString() || 0);
    const to = from + size;
    const hasMore = to < found.length;
    const withMetadata = args.flag("include_all_metadata");
    return {
      messages: found
        .slice(from, to)
        .map((message) =>
          message === undefined
            ? tombstone
            : { ...messageToWire(message, core.origin(), { withMetadata }), ...threadToWire(message) },
        ),
      has_more: hasMore,
      response_metadata: { next_cursor: hasMore ? Buffer.from(String(to)).toString("base64url") : "" },
    };
  }

  /** Finds the channel that a call names. Throws if the app cannot read it. */
  function readable(args: Arguments, { workspace }: Call): Channel {
    const channel = findChannel(workspace, args.needText("channel"));
    needScope(workspace, `${scopeOf(channel.kind)}:history`);
    if (!channel.members.has(workspace.bot.id)) throw new SlackRefusal("not_in_channel");
    return channel;
  }

  function replies(args: Arguments, call: Call): Json {
    const channel = readable(args, call);
    const ts = args.needText("ts");
    const root = channel.messages.get(ts);
    const found = repliesTo({ channel, ts });
    // The thread of a deleted message exists as long as it has replies.
    if (root === undefined && found.length === 0) throw new SlackRefusal("thread_not_found");
    // The root precedes the messages of each page.
    return page(args, [root, ...within(args, found)], toTombstone(ts));
  }

  function history(args: Arguments, call: Call): Json {
    const top = [...readable(args, call).messages.values()].filter(({ threadTs }) => threadTs === undefined);
    return page(args, within(args, top.toReversed()));
  }

  const none = { scopes: [], token: "bot" } as const;
  return {
    "conversations.replies": { ...none, run: replies },
    "conversations.history": { ...none, run: history },
    "conversations.info": {
      ...none,
      run(args, { workspace }) {
        const channel = findChannel(workspace, args.needText("channel"));
        needScope(workspace, `${scopeOf(channel.kind)}:read`);
        return { channel: channelToWire(channel) };
      },
    },
    "conversations.members": {
      ...none,
      run(args, { workspace }) {
        const channel = findChannel(workspace, args.needText("channel"));
        needScope(workspace, `${scopeOf(channel.kind)}:read`);
        return { members: [...channel.members], response_metadata: { next_cursor: "" } };
      },
    },
    "users.conversations": {
      scopes: ["channels:read", "groups:read"],
      token: "bot",
      run(args, { workspace }) {
        const user = args.text("user") ?? workspace.bot.id;
        const types = (args.text("types") ?? "public_channel").split(",");
        const kinds = new Set(types.map((type) => KINDS[type]));
        // "Non-public channels are restricted to those where the calling user shares membership."
        const isListed = ({ kind, members, isArchived }: Channel) =>
          kinds.has(kind) &&
          members.has(user) &&
          (kind === "public" || members.has(workspace.bot.id)) &&
          !(isArchived && args.flag("exclude_archived"));
        for (const kind of kinds) if (kind !== undefined) needScope(workspace, `${scopeOf(kind)}:read`);
        const channels = [...workspace.channels.values()].filter(isListed).map(channelToWire);
        return { channels, response_metadata: { next_cursor: "" } };
      },
    },
    "conversations.join": {
      scopes: ["channels:join"],
      token: "bot",
      run(args, { workspace }) {
        const channel = findChannel(workspace, args.needText("channel"));
        if (channel.kind !== "public") throw new SlackRefusal("method_not_supported_for_channel_type");
        channel.members.add(workspace.bot.id);
        core.changes.changed();
        return { channel: channelToWire(channel) };
      },
    },
    "conversations.open": {
      scopes: ["im:write", "mpim:write"],
      token: "bot",
      run(args, { workspace }) {
        const user = workspace.users.get(args.needText("users"));
        if (user === undefined) throw new SlackRefusal("user_not_found");
        return { channel: channelToWire(openDirect(core, workspace, user)) };
      },
    },
  };
}

export function openDirect(core: Core, workspace: Workspace, user: User): Channel {
  const known = [...workspace.channels.values()].find(({ kind, members }) => kind === "im" && members.has(user.id));
  return known ?? addChannel(core, workspace, { kind: "im", name: user.name, members: [user.id, workspace.bot.id] });
}

export function addChannel(
  core: Core,
  workspace: Workspace,
  { kind, name, members }: { kind: ChannelKind; name: string; members: readonly string[] },
): Channel {
  const prefix = { public: "C", private: "G", im: "D", mpim: "G" }[kind];
  const channel: Channel = {
    id: core.newId(prefix),
    name,
    kind,
    workspace,
    members: new Set(members),
    isArchived: false,
    isShared: false,
    isOrgShared: false,
    messages: new Map(),
    ephemerals: [],
  };
  workspace.channels.set(channel.id, channel);
  core.changes.changed();
  return channel;
}

function channelToWire({ id, name, kind, members, workspace, isArchived, isShared, isOrgShared }: Channel): Json {
  const type = channelType({ kind } as Channel);
  const person = [...members].find((member) => member !== workspace.bot.id);
  return {
    id,
    ...(kind === "im" ? { user: person } : { name }),
    is_channel: type === "channel",
    is_group: type === "group",
    is_im: type === "im",
    is_mpim: type === "mpim",
    is_private: kind !== "public",
    is_archived: isArchived,
    is_shared: isShared || isOrgShared,
    is_ext_shared: isShared,
    is_org_shared: isOrgShared,
    is_member: members.has(workspace.bot.id),
    context_team_id: workspace.id,
  };
}

/** Returns the fields that Slack adds to a thread's first message when an app reads it. */
function threadToWire(root: Message): Json {
  const replies = root.threadTs === undefined ? repliesTo(root) : [];
  const latest = replies.at(-1);
  return latest === undefined ? {} : { thread_ts: root.ts, reply_count: replies.length, latest_reply: latest.ts };
}

function scopeOf(kind: ChannelKind): string {
  return { public: "channels", private: "groups", im: "im", mpim: "mpim" }[kind];
}

function within(args: Arguments, messages: readonly Message[]): Message[] {
  const [oldest, latest] = [args.text("oldest") ?? "0", args.text("latest") ?? "9999999999.999999"];
  const isInclusive = args.flag("inclusive");
  return messages.filter(({ ts }) => (isInclusive ? ts >= oldest && ts <= latest : ts > oldest && ts < latest));
}
