// llama.cpp's server with a Mistral template. It reports template errors with status 500.
// https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
// template: https://github.com/ggml-org/llama.cpp/issues/19851, https://github.com/sipeed/picoclaw/issues/207
import { alternates, type Dialect, DRAWS_NOTHING, type ErrorBody, isToolTalk } from "../dialect.ts";

const llamaError: ErrorBody = (status, message, code) => ({ error: { code: status, message, type: code } });

const TEMPLATE = `\n------------\nWhile executing CallExpression at line 189, column 32 in source:\n...== 0) %}↵            {{- raise_exception('After the optional system message, con...\n                                           ^\nError: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.`;

export const llamaCpp: Dialect = {
  title: "llama.cpp",
  address: "http://127.0.0.1:8080/v1",
  chatModel: "devstral-small-2",
  hasModelList: true,
  errorBody: llamaError,
  unknownPath: () => ({ status: 404, body: llamaError(404, "File Not Found", "not_found_error") }),
  usageFields: (usage) => ({ usage, timings: { predicted_n: usage.completion_tokens } }),
  rules: [
    ({ messages }) =>
      alternates(messages, isToolTalk) ? undefined : { status: 500, body: llamaError(500, TEMPLATE, "server_error") },
  ],
  explained: DRAWS_NOTHING,
};
