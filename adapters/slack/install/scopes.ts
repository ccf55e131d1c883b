/** The bot token's scopes and their purposes, the same as in `manifest.json`. */
export const SCOPES: Readonly<Record<string, string>> = {
  "app_mentions:read": "to receive mentions",
  "assistant:write": "to show that it is thinking, and to suggest prompts",
  "channels:history": "to follow its threads in public channels",
  "channels:read": "to recognize channel names",
  "chat:write": "to answer",
  commands: "for its commands and shortcuts",
  "files:read": "to see attached images and files",
  "files:write": "to post images and long answers",
  "groups:history": "to follow its threads in private channels",
  "groups:read": "to know who is in a private channel before a form posts an image there",
  "im:history": "to receive direct messages",
  "im:read": "to know whose direct conversation it is before a form posts an image there",
  "mpim:history": "to receive group direct messages",
  "mpim:read": "to know who is in a group direct message before a form posts an image there",
  "reactions:write": "to mark a question that is waiting",
  "search:read.public": "to search public channels for the person who asks",
  "usergroups:read": "to know who is in the user groups that the policy names",
  "users:read": "to know people's names, and who is an admin",
};

/**
 * The scopes that people can refuse when they install the app. The bot works without them, and names a missing one when
 * a person needs it. https://docs.slack.dev/authentication/installing-with-oauth#optional-scopes
 */
export const OPTIONAL_SCOPES: readonly string[] = [
  "files:read",
  "files:write",
  "groups:read",
  "im:read",
  "mpim:read",
  "reactions:write",
  "search:read.public",
  "usergroups:read",
];
