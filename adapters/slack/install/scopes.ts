/** The scopes that the bot token asks for, and why. The same as in `manifest.json`. */
export const SCOPES: Readonly<Record<string, string>> = {
  "app_mentions:read": "to hear when the bot is mentioned",
  "assistant:write": "to say that it is thinking, and to suggest what to ask",
  "channels:history": "to follow a thread of a public channel that it is part of",
  "channels:read": "to know channels that are mentioned by their names",
  "chat:write": "to answer",
  commands: "for its commands and shortcuts",
  "files:read": "to see the pictures and files people attach",
  "files:write": "to bring pictures and long answers",
  "groups:history": "to follow a thread of a private channel that it is part of",
  "groups:read": "to tell who is in a private channel, before a form brings a picture there",
  "im:history": "to hear direct messages",
  "im:read": "to tell whose a direct conversation is, before a form brings a picture there",
  "mpim:history": "to hear direct messages of several people",
  "mpim:read": "to tell who is in a direct conversation of several people, before a form brings a picture there",
  "reactions:write": "to show at a question that it waits for its turn",
  "usergroups:read": "to know who is in the user groups that the policy names",
  "users:read": "to know people by their names, and who is an administrator",
};

/**
 * The scopes among them that can be refused when the app is installed. Without one the bot works, and says what is
 * missing when a person uses what it is for. https://docs.slack.dev/authentication/installing-with-oauth#optional-scopes
 */
export const OPTIONAL_SCOPES: readonly string[] = [
  "files:read",
  "files:write",
  "groups:read",
  "im:read",
  "mpim:read",
  "reactions:write",
  "usergroups:read",
];
