import { variables } from "./variables.ts";

type Variable = keyof typeof variables;

interface Section {
  title: string;
  entries: readonly Entry[];
}

interface Entry {
  names: readonly Variable[];
  /** In Markdown, short enough for a cell of a table. Paths are those of this repository. */
  meaning: string;
  /** Describes the behaviour while they are unset, where no default value says it or the value is too long. */
  unset?: string;
}

const SECTIONS: readonly Section[] = [
  {
    title: "The gateway to the models",
    entries: [
      {
        names: ["GATEWAY_BASE_URL"],
        unset: "the sandbox gateway inside Palaver",
        meaning: "The gateway's address, up to but not including `/v1`.",
      },
      {
        names: ["GATEWAY_API_KEY"],
        meaning: "Its key, sent as `Authorization: Bearer`. Required with `GATEWAY_BASE_URL`.",
      },
      {
        names: ["CHAT_MODEL"],
        meaning: "The model that answers, one that `GET /v1/models` lists. Required with `GATEWAY_BASE_URL`.",
      },
      {
        names: ["IMAGE_MODEL"],
        unset: "no pictures; with the sandbox gateway, its own",
        meaning: "The model that draws.",
      },
      {
        names: ["IMAGE_API"],
        meaning:
          "How the gateway is asked for pictures: `generate-content` (`POST /v1beta/models/…:generateContent`), `images` (`POST /v1/images/generations` and `/edits`), `chat` (`POST /v1/chat/completions`, for chat models that answer with pictures), or the first of them that works (`auto`).",
      },
      {
        names: ["CHAT_FALLBACK_MODEL"],
        meaning: "The model that answers while the first is down or at its limit; the answer says so.",
      },
      {
        names: ["GATEWAY_FALLBACK_BASE_URL", "GATEWAY_FALLBACK_API_KEY"],
        meaning:
          "A second gateway and its own key: it is asked while the first is down or at its limit; the answer says so.",
      },
      {
        names: ["SYSTEM_PROMPT"],
        unset: "a short one",
        meaning: "What the model is told before every conversation.",
      },
      {
        names: ["GATEWAY_IMAGE_KEY_HEADER"],
        meaning: "A header of the form `x-<vendor>-api-key`: tried once when the image endpoint answers 401.",
      },
      {
        names: ["GATEWAY_HEADERS"],
        meaning:
          'Headers that are sent with every request to the first gateway, as a JSON object: `{"x-portkey-provider":"openai"}`. A header of the same name replaces ours.',
      },
      {
        names: ["GATEWAY_EXTRA_BODY"],
        meaning:
          'Fields beyond the interface that are added to every chat request, as a JSON object: `{"reasoning_effort":"low"}`. An option that a channel chose with `/model` counts more.',
      },
      {
        names: ["GATEWAY_EXTRA_BODY_FILE"],
        meaning:
          'Path of a JSON file with such fields for single models, which count more: `{"some-model":{"reasoning_effort":"high"}}`.',
      },
      {
        names: ["MCP_CONFIG"],
        meaning: "The file that names tools from outside, where there is one; docs/mcp.md explains its fields.",
      },
      {
        names: ["FETCH_URL_HOSTS"],
        meaning:
          "Hosts whose pages the model may read, with commas between; unset, it reads none. `docs.example.com` and `*.example.com` are read over https and on the public network alone; `http://wiki.internal:8080` names one that is read as it is.",
      },
      {
        names: ["POLICY_FILE"],
        meaning:
          "A file, YAML or JSON, that says who may do what, how much of it, what it costs, and which models there are. A change is taken up while the service runs; docs/policy.md explains its fields.",
      },
      {
        names: ["GATEWAY_PORT"],
        unset: "8787",
        meaning: "Port of `npm run gateway`, the sandbox gateway on its own. Nothing else reads it.",
      },
    ],
  },
  {
    title: "Slack",
    entries: [
      {
        names: ["SLACK_BOT_TOKEN"],
        unset: "Slack is off",
        meaning:
          "*Bot User OAuth Token* under *OAuth & Permissions*, `xoxb-…`. Wants one of the next two; docs/slack.md leads through it.",
      },
      {
        names: ["SLACK_APP_TOKEN"],
        meaning: "*App-Level Token* under *Basic Information*, `xapp-…`: Socket Mode, which needs no public address.",
      },
      {
        names: ["SLACK_SIGNING_SECRET"],
        meaning: "*Signing Secret* under *Basic Information*: events come by HTTP to `POST /slack/events` instead.",
      },
      {
        names: ["SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_STATE_SECRET", "ENCRYPTION_KEY"],
        meaning:
          "Instead of the bot token, to let several workspaces install the app at `PUBLIC_URL` + `/slack/install`: client id and secret under *Basic Information*, a long random text that protects the installing, and 32 random bytes in base64 or hex that encrypt the workspaces' tokens (`openssl rand -base64 32`). The last one alone has the OAuth tokens of tool servers kept, encrypted, over restarts.",
      },
      {
        names: ["SLACK_ALLOWED_BOTS"],
        unset: "no other bot is answered",
        meaning: "Ids of other bots that are answered, `B…` or `U…`, with commas between.",
      },
      { names: ["SLACK_API_URL"], unset: "Slack's own", meaning: "Base of the Web API, with `/api/` at its end." },
    ],
  },
  {
    title: "Discord",
    entries: [
      {
        names: ["DISCORD_TOKEN"],
        unset: "Discord is off",
        meaning: "The bot's token, under *Bot* in the developer portal; docs/discord.md leads through it.",
      },
      {
        names: ["DISCORD_THREADS"],
        meaning:
          "Whether a mention in a server's channel opens a thread: always (`on`), never (`off`), or only while another answer is being written there (`auto`).",
      },
      {
        names: ["DISCORD_GUILD_ID"],
        unset: "everywhere, which takes Discord a while",
        meaning: "Id of the one server in which the commands are registered, where they can be used at once.",
      },
      {
        names: ["SHARDS", "SHARD_COUNT"],
        unset: "processes share out among themselves as many as Discord recommends",
        meaning: "The shards of this process and how many there are in all, such as `0,1` and `4`.",
      },
      {
        names: ["DISCORD_API_URL"],
        unset: "Discord's own",
        meaning: "Base of the REST API, without the version.",
      },
    ],
  },
  {
    title: "Where it listens, and where it keeps things",
    entries: [
      {
        names: ["DATA_DIR"],
        meaning: "Folder of the SQLite file.",
      },
      {
        names: ["REDIS_URL"],
        unset: "the SQLite file",
        meaning:
          "Redis or Valkey, `redis://host:6379` or `rediss://host:6379`: keeps histories, and what waits to be answered. docs/processes.md says what it has to do.",
      },
      {
        names: ["ROLE"],
        meaning:
          "What this process does: `ingress` hears the platforms and stores what they bring, `worker` answers it, `all` does both. The first two need `REDIS_URL` and have no local page.",
      },
      {
        names: ["HOST", "PORT"],
        meaning:
          "Address and port of the one HTTP server: the page, health checks, metrics, Slack's events, pictures for the gateway. `0.0.0.0` means every address of this machine; where others can reach it, the page needs `LOCAL_PASSWORD`.",
      },
      {
        names: ["PUBLIC_URL"],
        meaning:
          "This service's address as the public network reaches it, `https://…`: the gateway fetches there the pictures that others start from, and Slack reaches it there (HTTP, installations).",
      },
      {
        names: ["METRICS_TOKEN"],
        unset: "only programs on this machine may, not through a proxy",
        meaning:
          "Lets read `/metrics` and the details of `/readyz`, sent as `Authorization: Bearer`. At least 16 characters.",
      },
      {
        names: ["ADMIN_PASSWORD"],
        unset: "no dashboard",
        meaning:
          "Switches on the dashboard at `/admin`, and is asked for there. At least 12 characters. To be set for every process of the service: what one without it does is not seen. [dashboard.md](dashboard.md) tells what it shows.",
      },
      {
        names: ["ADMIN_TRUSTED_PROXY", "ADMIN_USER_HEADER"],
        meaning:
          "Instead of the password, or beside it: addresses or networks (`10.0.0.0/8`), with commas between, of proxies that let in nobody but administrators, and the header in which they name them. The proxy must take that header away from what others send.",
      },
    ],
  },
  {
    title: "The local page and the terminal",
    entries: [
      {
        names: ["LOCAL_CHAT"],
        meaning: "The page at `/`: `on`, `off`, or on while neither Slack nor Discord is configured (`auto`).",
      },
      {
        names: ["LOCAL_PASSWORD"],
        meaning:
          "Asked for before the page opens, with any user name. At least 8 characters. Whoever guesses has to wait longer each time. Required to open the page on another address than loopback.",
      },
      { names: ["BOT_NAME"], meaning: "The bot's name on the page." },
      {
        names: ["CONSOLE_CHAT"],
        meaning:
          "`on`: a chat at the terminal and nothing else, with data in `./data/console`; `npm run chat` sets it.",
      },
    ],
  },
  {
    title: "The bot",
    entries: [
      {
        names: ["HISTORY_TTL_DAYS"],
        meaning: "How many days a conversation is kept after its last message.",
      },
      {
        names: ["HISTORY_MAX_MESSAGES", "HISTORY_MAX_TOKENS"],
        meaning:
          "What the model sees of a conversation, with the files in it: at most so many of its newest messages, and so many (estimated) tokens. What people said to others counts by its tokens alone.",
      },
      {
        names: ["CONTEXT_MESSAGES"],
        meaning:
          "How many of a channel's last messages a question there brings along, up to 100; `0`: none. `/model --context` sets another number for one channel.",
      },
      {
        names: ["DELETED_QUESTIONS"],
        meaning:
          "What becomes of the answer to a question that is deleted: a button deletes it too (`offer`), or it goes at once (`remove`).",
      },
      { names: ["IMAGINE_MAX_REFERENCES"], meaning: "Pictures that one picture may start from, 1 to 16." },
      {
        names: ["RELAY_SECRETS"],
        unset: "one is made and kept with the data",
        meaning:
          "Keys of the links under which the gateway fetches people's pictures here, at least 32 characters each, with commas between: the first signs, all are accepted.",
      },
      { names: ["MAX_CONCURRENT_TURNS"], meaning: "Conversations answered side by side; further ones wait." },
      {
        names: ["SHUTDOWN_GRACE_SECONDS"],
        meaning:
          "Longest that the end takes after SIGTERM. Running answers are cut seven seconds before that: with `REDIS_URL` another process goes on with them, or the next one to start; without it they are marked.",
      },
      {
        names: ["LOG_LEVEL"],
        meaning:
          "`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`. What people, the model and the gateway say, and names of files, stand in lines at `debug` and below only.",
      },
    ],
  },
];

const MAX_LINE_CHARS = 120;

/** `.env.example` whole: copied as it is, or with its commented lines, it is the configuration without any variable. */
export function printEnvExample(): string {
  const intro =
    "Copy to .env and fill in what you use. Everything may stay empty: Palaver then answers on its local page, from a gateway of its own that needs no key. An empty variable counts as unset. `npm run setup` fills it in with you; docs/configuration.md has the same as a table.";
  const sections = SECTIONS.map(({ title, entries }) => `## ${title}\n\n${entries.map(toLines).join("")}`);
  return [toComment(intro), ...sections].join("\n");
}

function toLines({ names, meaning, unset }: Entry): string {
  const text = unset === undefined ? meaning : `${meaning} Empty: ${unset}.`;
  const lines = names.map((name) => {
    const value = unset === undefined ? defaultOf(name) : undefined;
    return value === undefined ? `${name}=\n` : `# ${name}=${value}\n`;
  });
  return toComment(text) + lines.join("");
}

function toComment(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < MAX_LINE_CHARS) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`# ${word}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The tables of docs/configuration.md, one for each section. */
export function printConfigurationTables(): string {
  return SECTIONS.map(({ title, entries }) => {
    const rows = entries.map(({ names, meaning, unset }) => {
      const defaults = names.flatMap((name) => defaultOf(name) ?? []).map((value) => `\`${value}\``);
      const cells = [names.map((name) => `\`${name}\``).join(", "), unset ?? defaults.join(", "), toLinked(meaning)];
      return `| ${cells.join(" | ")} |\n`;
    });
    return `## ${title}\n\n| variable | default | meaning |\n|---|---|---|\n${rows.join("")}`;
  }).join("\n");
}

function toLinked(text: string): string {
  return text.replaceAll(/\bdocs\/([a-z]+\.md)\b/g, "[$1]($1)");
}

/** The schema's default for an unset variable, as it would be written; undefined for none. */
function defaultOf(name: Variable): string | undefined {
  const { data } = variables[name].safeParse(undefined);
  return typeof data === "string" || typeof data === "number" ? String(data) : undefined;
}
