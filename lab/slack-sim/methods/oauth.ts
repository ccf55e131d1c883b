import type { MethodDeps, Methods } from "../method.ts";
import type { OAuth } from "../oauth.ts";

export function createOAuthMethods({ oauth }: MethodDeps & { oauth: OAuth }): Methods {
  return {
    "oauth.v2.access": {
      scopes: [],
      token: "none",
      run: (args) =>
        oauth.exchange({
          clientId: args.text("client_id") ?? "",
          clientSecret: args.text("client_secret") ?? "",
          code: args.text("code"),
          refreshToken: args.text("refresh_token"),
        }),
    },
  };
}
